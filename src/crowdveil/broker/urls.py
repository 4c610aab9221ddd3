"""Every address of the broker."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import include, path

from crowdveil.broker.api import problems
from crowdveil.broker.api.app import api
from crowdveil.broker.console import access
from crowdveil.broker.ops import health, metrics
from crowdveil.broker.worker_app import files as worker_app

handler404 = "crowdveil.broker.api.problems.not_found"
handler500 = "crowdveil.broker.api.problems.server_error"


def handler400(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """What Django itself refuses to read: people get a page, programs a problem."""
    return access.unreadable(request) if request.path_info.startswith("/console/") else problems.bad_request(request)


def _front_door(request: HttpRequest) -> HttpResponse:
    """Most who come are workers."""
    return HttpResponseRedirect("/app/")


urlpatterns = [
    # First, because addresses are tried in this order.
    path("api/v1/", api.urls),
    path("", _front_door),
    path("console/", include("crowdveil.broker.console.urls")),
    path("console", lambda request: HttpResponseRedirect("/console/")),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics.page),
    path("app/", worker_app.serve),
    path("app/<path:name>", worker_app.serve),
]
