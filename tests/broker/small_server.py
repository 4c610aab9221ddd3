"""A small application in two supervised processes: it replies with its process, dies when asked to, or fails.

python small_server.py PORT FOLDER
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crowdveil.broker.bootstrap import Place

Place(Path(sys.argv[2])).enter()

from crowdveil.broker import server  # noqa: E402
from crowdveil.broker.middleware.request_log import start_logging  # noqa: E402


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    if environ["PATH_INFO"] == "/die":
        os.kill(os.getpid(), signal.SIGKILL)
    if environ["PATH_INFO"].startswith("/fail"):
        raise RuntimeError(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]


start_logging()
signal.signal(signal.SIGTERM, server._stop)
supervisor = os.getpid()
with server.listen("127.0.0.1", int(sys.argv[1])) as listener:
    server.supervise(lambda: server.http_server(application, listener, supervisor=supervisor).run(), 2)
