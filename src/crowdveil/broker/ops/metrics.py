"""Counters in Prometheus' text format; routes instead of addresses, so that no label names a person or a study."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict

from django.http import HttpRequest, HttpResponse

from crowdveil import __version__
from crowdveil.broker import clock_guard

_lock = threading.Lock()
_requests: Counter[tuple[str, str, int]] = Counter()
_seconds: defaultdict[tuple[str, str], float] = defaultdict(float)


def observe(method: str, route: str, status: int, seconds: float) -> None:
    with _lock:
        _requests[method, route, status] += 1
        _seconds[method, route] += seconds


def page(request: HttpRequest) -> HttpResponse:
    """What `/metrics` answers."""
    with _lock:
        requests, seconds = sorted(_requests.items()), sorted(_seconds.items())
    lines = ["# HELP crowdveil_info The running version.", "# TYPE crowdveil_info gauge"]
    lines += [f'crowdveil_info{{version="{__version__}"}} 1']
    lines += ["# HELP crowdveil_clock_trusted 0 after a jump of the clock.", "# TYPE crowdveil_clock_trusted gauge"]
    lines += [f"crowdveil_clock_trusted {int(clock_guard.is_trusted())}"]
    lines += ["# HELP crowdveil_requests_total Requests answered.", "# TYPE crowdveil_requests_total counter"]
    lines += [
        f'crowdveil_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
        for (method, route, status), count in requests
    ]
    lines += ["# HELP crowdveil_request_seconds_total Time spent.", "# TYPE crowdveil_request_seconds_total counter"]
    lines += [
        f'crowdveil_request_seconds_total{{method="{method}",route="{route}"}} {total:.6f}'
        for (method, route), total in seconds
    ]
    return HttpResponse("\n".join(lines) + "\n", content_type="text/plain; version=0.0.4; charset=utf-8")
