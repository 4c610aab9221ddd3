"""Expensive computations run in one thread of their own, behind a short queue and within a time limit.

A request thread that computes is one of the few threads of the server: several large drafts at once stopped it. Here
at most `MAX_JOBS` requests wait for a computation, any further one is refused at once, and a computation ends when its
request has taken too long or its client has gone.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from django.http import HttpRequest, HttpResponse

from crowdveil.broker.problems import Refusal
from crowdveil.progress import Step, heard_by

MAX_JOBS = 2
"""Running and waiting together: a quarter of the server's threads."""
MAX_SECONDS = 20.0
"""So long all computations of one request may take together, waiting included."""
_POLL_SECONDS = 0.25

Result = TypeVar("Result")


@dataclass(slots=True)
class TimeLimit:
    """Until when a request may compute, and for whom: `disconnected` says whether the client has gone."""

    end: float = field(default_factory=lambda: time.monotonic() + MAX_SECONDS)
    disconnected: Callable[[], bool] = lambda: False
    cancelled: bool = False

    def check(self, step: Step | None = None) -> None:
        """Refuse to go on where nobody waits for the result any more; a listener of `progress`."""
        if self.cancelled or time.monotonic() > self.end or self.disconnected():
            self.cancelled = True
            raise Refusal("not-ready", f"computing takes over {MAX_SECONDS:g} s; what is done is kept; try again")


_current: ContextVar[TimeLimit | None] = ContextVar("time_limit", default=None)
_places = threading.BoundedSemaphore(MAX_JOBS)


@lru_cache(maxsize=1)
def _executor(process: int) -> ThreadPoolExecutor:
    """The thread of this process: one that was started before a fork does not exist after it."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="compute")


def compute(work: Callable[[], Result]) -> Result:
    """The result of the work, or a refusal where too many wait already or the request's time is over.

    The work ends at the next `progress.tell` after that. Its place is free when it has really ended.
    """
    limit = _current.get() or TimeLimit()
    limit.check()
    if not _places.acquire(blocking=False):
        raise Refusal("not-ready", "other studies are being computed; try again in a few seconds")

    def run() -> Result:
        with heard_by(limit.check):
            limit.check()
            return work()

    future = _executor(os.getpid()).submit(run)
    future.add_done_callback(lambda _: _places.release())
    try:
        while not wait([future], timeout=_POLL_SECONDS).done:
            limit.check()
    except Refusal:
        future.cancel()
        raise
    return future.result()


class RequestTimeLimit:
    """Middleware: one time limit for all that a request computes.

    A server that can tell whether the client is still there says so in the environment, as waitress does.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        disconnected = request.META.get("waitress.client_disconnected", lambda: False)
        token = _current.set(TimeLimit(disconnected=disconnected))
        try:
            return self._get_response(request)
        finally:
            _current.reset(token)
