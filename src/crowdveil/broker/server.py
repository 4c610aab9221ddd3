"""Serving: gunicorn with threads, in one process on SQLite, where one writer at a time is the rule."""

from __future__ import annotations

from typing import Any

from django.core.wsgi import get_wsgi_application
from gunicorn.app.base import BaseApplication

from crowdveil.broker import caretaker
from crowdveil.broker.operations.logs import start_logging

_THREADS = 16


class Server(BaseApplication):
    """The WSGI server, configured in code: there is nothing to write into a file."""

    def __init__(self, *, address: str, processes: int = 1, threads: int = _THREADS) -> None:
        self._address, self._processes, self._threads = address, processes, threads
        super().__init__()

    def load_config(self) -> None:
        settings: dict[str, Any] = {
            "bind": self._address,
            "workers": self._processes,
            "worker_class": "gthread",
            "threads": self._threads,
            "keepalive": 30,
            "timeout": 120,
            "graceful_timeout": 20,
            "loglevel": "warning",
            "accesslog": None,
            "limit_request_line": 4094,
            "limit_request_fields": 50,
            "proc_name": "crowdveil",
            "post_worker_init": _begin,
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return get_wsgi_application()


def _begin(worker: Any) -> None:
    start_logging()
    caretaker.start()
