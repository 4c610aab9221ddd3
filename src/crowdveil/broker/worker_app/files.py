"""Serving the device code as it is shipped: no cookie, no template, nothing that could differ between two workers.

The policy lets the page run its own modules and talk to its own origin, and nothing else; inline import maps are
allowed by their hash, so that they, too, are exactly what was shipped.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified

from crowdveil.broker.api.problems import not_found

_SUFFIXES = {".html", ".js", ".css", ".json", ".svg", ".png", ".webmanifest", ".woff2"}
_NOT_SHOWN = {"package.json"}
_LONGEST = 200
_TYPES = {".js": "text/javascript; charset=utf-8", ".webmanifest": "application/manifest+json"}
_POLICY = (
    "default-src 'none'; script-src 'self'{hashes}; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types crowdveil"
)


@dataclass(frozen=True, slots=True)
class Shipped:
    """One file of the app with the headers it is served with."""

    content: bytes
    kind: str
    tag: str
    policy: str


def serve(request: HttpRequest, name: str = "index.html") -> HttpResponse:
    """A file of the app; the entry page for the bare address."""
    file = load_shipped_file(name or "index.html")
    if request.method not in ("GET", "HEAD") or file is None:
        return not_found(request)
    unchanged = request.headers.get("If-None-Match") == file.tag
    # A browser replaces the headers it kept by those of a "not modified", so that must carry the policy, too.
    response = HttpResponseNotModified() if unchanged else HttpResponse(file.content, content_type=file.kind)
    response["ETag"] = file.tag
    response["Cache-Control"] = "no-cache"
    response["Content-Security-Policy"] = file.policy
    response["Integrity-Policy"] = "blocked-destinations=(script)"
    return response


@lru_cache(maxsize=256)
def load_shipped_file(name: str) -> Shipped | None:
    """Read once per process: a page must not change while somebody uses it."""
    parts = name.split("/")
    suffix = "." + parts[-1].rpartition(".")[2]
    # A file system would refuse a longer name with an error of its own.
    if suffix not in _SUFFIXES or name in _NOT_SHOWN or len(name) > _LONGEST:
        return None
    if any(not part or part.startswith(".") for part in parts):
        return None
    device_files = files("crowdveil") / "device"
    for part in parts:
        device_files = device_files / part
    if not device_files.is_file():
        return None
    content = device_files.read_bytes()
    kind = _TYPES.get(suffix) or mimetypes.types_map.get(suffix, "application/octet-stream")
    return Shipped(
        content, kind, f'"{hashlib.sha256(content).hexdigest()}"', _policy(content if suffix == ".html" else b"")
    )


def _policy(page: bytes) -> str:
    """The policy, with the hash of every inline script of the page."""
    inline = re.findall(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", page, re.DOTALL)
    hashes = "".join(f" 'sha256-{base64.b64encode(hashlib.sha256(code).digest()).decode()}'" for code in inline)
    return _POLICY.format(hashes=hashes)
