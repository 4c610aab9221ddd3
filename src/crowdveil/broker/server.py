"""Serving: gunicorn with threads, in one process on SQLite, where one writer at a time is the rule."""

from __future__ import annotations

from typing import Any

from django.core.signals import request_started
from django.core.wsgi import get_wsgi_application
from django.db import reset_queries
from gunicorn.app.base import BaseApplication

from crowdveil.broker import background_jobs
from crowdveil.broker.api.short_way import ShortWay
from crowdveil.broker.db.transactions import share_one_connection
from crowdveil.broker.middleware.request_log import start_logging
from crowdveil.broker.reception import Reception

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
            "worker_class": Reception,
            "threads": self._threads,
            "keepalive": 30,
            "timeout": 120,
            "graceful_timeout": 20,
            "loglevel": "warning",
            "accesslog": None,
            "limit_request_line": 4094,
            "limit_request_fields": 50,
            # Nobody's headers name the path or the scheme here; Django reads those of a proxy where it is told of one.
            "forwarded_allow_ips": "",
            "forwarder_headers": "",
            "proc_name": "crowdveil",
            "post_worker_init": _begin,
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return ShortWay(get_wsgi_application())


def _begin(worker: Any) -> None:
    start_logging()
    share_one_connection()
    request_started.disconnect(reset_queries)
    background_jobs.start()
