"""The console's own style sheet and htmx 2 (0BSD licence), from this package: nothing comes from another host."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.resources import files

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified

from crowdveil.broker.api.problems import not_found

_ASSETS = {
    "console.css": ("crowdveil", "broker/console/static/console.css", "text/css; charset=utf-8"),
    "htmx.min.js": ("crowdveil", "broker/console/static/htmx-2.min.js", "text/javascript; charset=utf-8"),
    "icon.svg": ("crowdveil", "device/icon.svg", "image/svg+xml"),
}


def asset(request: HttpRequest, name: str) -> HttpResponse:
    """One file, which a browser may keep until it changes."""
    if name not in _ASSETS:
        return not_found(request)
    content, kind, tag = _read(name)
    unchanged = request.headers.get("If-None-Match") == tag
    response = HttpResponseNotModified() if unchanged else HttpResponse(content, content_type=kind)
    response["ETag"], response["Cache-Control"] = tag, "no-cache"
    return response


@lru_cache(maxsize=8)
def _read(name: str) -> tuple[bytes, str, str]:
    package, path, kind = _ASSETS[name]
    found = files(package)
    for part in path.split("/"):
        found = found / part
    content = found.read_bytes()
    return content, kind, f'"{hashlib.sha256(content).hexdigest()}"'
