"""One write at a time on SQLite, row locks on PostgreSQL; the services below are written once for both.

SQLite's busy handler backs off for seconds when several connections write; one lock in the one process that serves
does not. Every transaction locks in the same order (budget, reservation, rows of its own, the study's money), so none
waits in a circle.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.db import connection, transaction

one_writer = threading.RLock()
_CHAINS, _STUDIES = 0x63766569, 0x6376656A
AUDIT, PUBLIC_LOG = 1, 2


@contextmanager
def write() -> Iterator[None]:
    """A transaction that will write: all of it happens, or nothing."""
    with one_writer if connection.vendor == "sqlite" else nullcontext(), transaction.atomic():
        yield


def in_line(queue: int) -> None:
    """Wait, inside a transaction, until nobody else appends to the same chain: a link must name the last one.

    A lock on the last row would not do: whoever waited for it gets the row that was last before.
    """
    if connection.vendor == "postgresql":
        row("SELECT pg_advisory_xact_lock(%s, %s)", _CHAINS, queue)


def alone_with_reports_of(study: str) -> None:
    """Wait, inside a transaction, until nobody else removes or rewrites reports of this study.

    Closing copies every row and puts it back: a withdrawal in between would remove the old row and not its copy.
    """
    if connection.vendor == "postgresql":
        row("SELECT pg_advisory_xact_lock(%s, %s)", _STUDIES, int(study[:8], 16) - 2**31)


def changed(statement: str, *parameters: Any) -> int:
    """Run one statement and say how many rows it changed: the check that nothing was overspent."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)


def row(statement: str, *parameters: Any) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        found: tuple[Any, ...] | None = cursor.fetchone()
        return found


def rows(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())
