"""What Prometheus reads at /metrics: routes instead of addresses, so that no label names a person or a study.

Several processes of one broker count into files of a common folder, named by `PROMETHEUS_MULTIPROC_DIR`, and each
answers with the sum; `crowdveil serve` prepares it.
"""

from __future__ import annotations

import os

from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from crowdveil import __version__
from crowdveil.broker import clock_guard

disable_created_metrics()  # type: ignore[no-untyped-call]
_registry = CollectorRegistry()
_requests = Counter("crowdveil_requests", "Requests answered.", ["method", "route", "status"], registry=_registry)
_seconds = Counter("crowdveil_request_seconds", "Time spent.", ["method", "route"], registry=_registry)
_clock = Gauge("crowdveil_clock_trusted", "0 after a jump of the clock.", registry=_registry, multiprocess_mode="min")
_version = Gauge("crowdveil_info", "The running version.", ["version"], registry=_registry, multiprocess_mode="max")


def observe(method: str, route: str, status: int, seconds: float) -> None:
    _requests.labels(method, route, status).inc()
    _seconds.labels(method, route).inc(seconds)


def page(request: HttpRequest) -> HttpResponse:
    """What `/metrics` answers."""
    _version.labels(__version__).set(1)
    _clock.set(int(clock_guard.is_trusted()))
    registry = _registry
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return HttpResponse(generate_latest(registry), content_type="text/plain; version=0.0.4; charset=utf-8")
