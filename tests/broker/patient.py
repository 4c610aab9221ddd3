"""A small application behind the broker's reception: two threads, little patience, and replies of a body's size."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from django.conf import settings
from gunicorn.app.base import BaseApplication

settings.configure(DATA_UPLOAD_MAX_MEMORY_SIZE=100_000)

from crowdveil.broker import reception  # noqa: E402

reception.SECONDS = float(sys.argv[2])
reception._MOST_HELD = 150_000


def size(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(length) if length <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE else b"refused"
    content = str(len(body)).encode()
    start_response("200 OK", [("Content-Length", str(len(content)))])
    return [content]


class Small(BaseApplication):
    """As the broker's server, with another application."""

    def load_config(self) -> None:
        chosen = {"bind": f"127.0.0.1:{sys.argv[1]}", "worker_class": reception.Reception, "threads": 2}
        for name, value in (chosen | {"keepalive": 30, "loglevel": "warning"}).items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return size


Small().run()
