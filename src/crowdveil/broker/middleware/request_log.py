"""Structured logs: one JSON line per request with method, route, status and time; no address, no id, no body."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from crowdveil.broker.ops import metrics

_log = logging.getLogger("crowdveil.request")
_EXTRA = ("method", "route", "status", "milliseconds", "error", "where", "study", "n")
_encode = json.JSONEncoder(ensure_ascii=False).encode


class JsonLines(logging.Formatter):
    """One JSON object per line, with the named extras and nothing else."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"at": int(record.created), "level": record.levelname.lower(), "message": record.getMessage()}
        given = record.__dict__
        line |= {name: given[name] for name in _EXTRA if name in given}
        return _encode(line)


class OnlyTheKind(logging.Filter):
    """Of what the HTTP server says about a request: that one failed and where, and not a byte of it.

    It would name the path that failed, ids included, and the address it came from.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            record.error, record.where = type(error).__name__, where(error)
        record.msg, record.args = "request not understood or not finished", ()
        record.exc_info = record.exc_text = None
        return True


def where(error: BaseException) -> str:
    """The place of an error without its message, which may quote what was sent."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else "unknown"


def start_logging() -> None:
    root, server = logging.getLogger("crowdveil"), logging.getLogger("waitress")
    root.handlers[:] = _handlers(os.environ.get("CROWDVEIL_LOG", "-"))
    root.setLevel(logging.INFO)
    root.propagate = False
    server.handlers[:] = root.handlers
    server.setLevel(logging.WARNING)
    server.propagate = False
    server.addFilter(OnlyTheKind())
    # It would count the requests that wait for a thread, in a line for each of them.
    logging.getLogger("waitress.queue").setLevel(logging.CRITICAL)
    # Django would print the addresses that were asked for, ids included.
    django = logging.getLogger("django")
    django.handlers[:] = [logging.NullHandler()]
    django.propagate = False


def _handlers(log: str) -> list[logging.Handler]:
    """Everything to stderr, or everything to a file and to stderr only what somebody must see."""
    shown = logging.StreamHandler(sys.stderr)
    handlers: list[logging.Handler] = [shown]
    if log != "-":
        shown.setLevel(logging.WARNING)
        handlers.append(logging.FileHandler(log, encoding="utf-8"))
    for handler in handlers:
        handler.setFormatter(JsonLines())
    return handlers


class StructuredLog:
    """Logs and counts each request by its route, in which ids are only placeholders."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        begun = time.perf_counter()
        response = self._get_response(request)
        seconds = time.perf_counter() - begun
        match = request.resolver_match
        route = match.route if match else "unknown"
        method = request.method if request.method in _METHODS else "OTHER"
        finished(method, route, response.status_code, seconds)
        return response


def finished(method: str, route: str, status: int, seconds: float) -> None:
    """Count a request and write its line."""
    metrics.observe(method, route, status, seconds)
    extra = {"method": method, "route": route, "status": status, "milliseconds": round(seconds * 1000, 1)}
    _log.info("request", extra=extra)


_METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
