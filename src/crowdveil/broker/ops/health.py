"""Alive, and ready: for whoever starts, watches and balances brokers."""

from __future__ import annotations

import tempfile

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from crowdveil.broker.problems import Refusal, problem_response

_ready = False
_PROBE_BYTES = 1 << 16


def healthz(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"alive": True})


def readyz(request: HttpRequest) -> HttpResponse:
    """Ready when the database answers, its schema is up to date, and there is room to write."""
    global _ready
    try:
        if not _ready:
            executor = MigrationExecutor(connection)
            if executor.migration_plan(executor.loader.graph.leaf_nodes()):
                return problem_response(Refusal("not-ready", "the database schema is not up to date"))
            _ready = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return problem_response(Refusal("not-ready", "the database does not answer"))
    try:
        with tempfile.TemporaryFile(dir=settings.DATA_DIR) as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
    except OSError:
        return problem_response(Refusal("not-ready", "the data directory cannot be written; make room on its disk"))
    return JsonResponse({"ready": True})
