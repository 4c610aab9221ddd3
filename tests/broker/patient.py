"""A small application behind the broker's reception: two threads, little patience, and replies of a body's size.

A request that names a gate is answered when that file is there. Replies tell of the worker, too: its process, and how
many connections and bytes it has.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from gunicorn.app.base import BaseApplication
from waiting import until

settings.configure(DATA_UPLOAD_MAX_MEMORY_SIZE=100_000)

from crowdveil.broker import reception  # noqa: E402

reception.SECONDS, reception.STANDSTILL = float(sys.argv[2]), 0.4
reception._MOST_HELD = 150_000
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
workers: list[Any] = []


def size(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(length) if length <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE else b"refused"
    if "HTTP_GATE" in environ:
        until(Path(environ["HTTP_GATE"]).exists)
    content = bytes(1 << 24) if environ["PATH_INFO"] == "/large" else str(len(body)).encode()
    state = f"{os.getpid()} {workers[0].nr_conns} {workers[0]._held}"
    start_response("200 OK", [("Content-Length", str(len(content))), ("Worker", state)])
    return [content]


class Small(BaseApplication):
    """As the broker's server, with another application."""

    def load_config(self) -> None:
        chosen = {"bind": f"127.0.0.1:{sys.argv[1]}", "worker_class": reception.Reception, "threads": 2}
        chosen |= {"keepalive": 30, "loglevel": "warning", "post_worker_init": workers.append}
        for name, value in chosen.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return size


Small().run()
