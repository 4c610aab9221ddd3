"""One write at a time on SQLite, row locks on PostgreSQL; the services below are written once for both.

SQLite's busy handler backs off for seconds when several connections write; one lock in the one process that serves
does not. Every transaction locks in the same order (budget, reservation, rows of its own, the study's money), so none
waits in a circle.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from operator import attrgetter, methodcaller
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

writer_lock = threading.RLock()
_shared: list[BaseDatabaseWrapper] = []
_CHAINS, _STUDIES, _LEASES, _UPDATES = 0x63766569, 0x6376656A, 0x6376656B, 0x6376656C
AUDIT, PUBLIC_LOG, KEY_ESCROW = 1, 2, 3
_COUNT, _ONE, _ALL = attrgetter("rowcount"), methodcaller("fetchone"), methodcaller("fetchall")


@contextmanager
def write_transaction() -> Iterator[None]:
    """A transaction that will write: all of it happens, or nothing."""
    if connection.vendor != "sqlite":
        with transaction.atomic():
            yield
    else:
        with writer_lock, _through_the_shared(), transaction.atomic():
            yield


def share_one_connection() -> None:
    """From now on all writes of this process go through one connection; called by the process that serves SQLite.

    SQLite throws a connection's page cache away whenever another connection has written. With one that writes, it stays
    good, and a submission reads no page that it wrote before. Nothing is shared before it is called: a connection
    must not pass a fork.
    """
    if connection.vendor == "sqlite" and not _shared:
        shared = connections.create_connection(DEFAULT_DB_ALIAS)
        shared.inc_thread_sharing()
        _shared.append(shared)


@contextmanager
def _through_the_shared() -> Iterator[None]:
    """This thread writes through the shared connection while it holds the lock, and reads through its own after."""
    if not _shared:
        yield
        return
    own = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = _shared[0]
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = own


def chain_lock(queue: int) -> None:
    """Wait, inside a transaction, until nobody else appends to the same chain: a link must name the last one.

    A lock on the last row would not do: whoever waited for it gets the row that was last before.
    """
    if connection.vendor == "postgresql":
        fetch_one("SELECT pg_advisory_xact_lock(%s, %s)", _CHAINS, queue)


def study_lock(study: str) -> None:
    """Wait, inside a transaction, until nobody else removes or rewrites reports of this study.

    Closing copies every row and puts it back: a withdrawal in between would remove the old row and not its copy.
    """
    if connection.vendor == "postgresql":
        fetch_one("SELECT pg_advisory_xact_lock(%s, %s)", _STUDIES, int(study[:8], 16) - 2**31)


def alone_with_leases_of(study: str) -> None:
    """Wait, inside a transaction, until nobody else leases tasks of this pool: two would pick the same ones."""
    if connection.vendor == "postgresql":
        fetch_one("SELECT pg_advisory_xact_lock(%s, %s)", _LEASES, int(study[:8], 16) - 2**31)


@contextmanager
def alone_with_labels_of(study: str, *, wait: bool) -> Iterator[bool]:
    """Whether no other process updates the labels of this pool meanwhile; with `wait`, once none does.

    The lock is the connection's, since an update takes many transactions; it ends with the process that holds it.
    """
    if connection.vendor != "postgresql":
        yield True
        return
    key = (_UPDATES, int(study[:8], 16) - 2**31)
    if wait:
        fetch_one("SELECT pg_advisory_lock(%s, %s)", *key)
    elif fetch_one("SELECT pg_try_advisory_lock(%s, %s)", *key) != (True,):
        yield False
        return
    try:
        yield True
    finally:
        fetch_one("SELECT pg_advisory_unlock(%s, %s)", *key)


def execute_rowcount(statement: str, *parameters: Any) -> int:
    """Run one statement and say how many rows it changed: the check that nothing was overspent."""
    return int(_run(statement, parameters, _COUNT))


def fetch_one(statement: str, *parameters: Any) -> tuple[Any, ...] | None:
    found: tuple[Any, ...] | None = _run(statement, parameters, _ONE)
    return found


def fetch_all(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    return list(_run(statement, parameters, _ALL))


def _run(statement: str, parameters: tuple[Any, ...], read: Callable[[Any], Any]) -> Any:
    """Run a statement and read what it gave.

    On SQLite without Django's cursor, which rewrites the placeholders every time and takes longer than the statement;
    a broken transaction is refused and errors have Django's names as there.
    """
    here = connections[DEFAULT_DB_ALIAS]
    if here.vendor != "sqlite":
        with here.cursor() as cursor:
            cursor.execute(statement, parameters)
            return read(cursor)
    if here.connection is None:
        here.ensure_connection()
    if here.needs_rollback:
        here.validate_no_broken_transaction()
    with here.wrap_database_errors:
        ran = here.connection.execute(_with_question_marks(statement), parameters)
        try:
            return read(ran)
        finally:
            ran.close()


@lru_cache(maxsize=256)
def _with_question_marks(statement: str) -> str:
    return statement.replace("%s", "?")
