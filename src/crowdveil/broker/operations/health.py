"""Alive, and ready: for whoever starts, watches and balances brokers."""

from __future__ import annotations

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from crowdveil.broker.operations.limits import refused
from crowdveil.broker.refusal import Refusal

_ready = False


def healthz(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"alive": True})


def readyz(request: HttpRequest) -> HttpResponse:
    """Ready when the database answers and its schema is up to date."""
    global _ready
    try:
        if not _ready:
            executor = MigrationExecutor(connection)
            if executor.migration_plan(executor.loader.graph.leaf_nodes()):
                return refused(Refusal("not-ready", "the database schema is not up to date"))
            _ready = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return refused(Refusal("not-ready", "the database does not answer"))
    return JsonResponse({"ready": True})
