"""One connection that writes, for all threads of the process that serves SQLite: whole or nothing, as before."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest


@pytest.fixture
def shared(django_here: Path) -> Iterator[None]:
    from crowdveil.broker.db import transactions

    transactions.share_one_connection()
    yield
    for connection in transactions._shared:
        connection.close()
    transactions._shared.clear()


def test_threads_write_through_one_connection_and_read_through_their_own(shared: None) -> None:
    from django.db import connection, connections

    from crowdveil.broker.db.transactions import execute_rowcount, fetch_one, write_transaction

    execute_rowcount("CREATE TABLE counted (n INTEGER)")
    execute_rowcount("INSERT INTO counted VALUES (0)")

    def add(_: int) -> tuple[int, int]:
        own = id(connection.connection)
        with write_transaction():
            writer = id(connections["default"])
            execute_rowcount("UPDATE counted SET n = n + 1")
            with write_transaction():
                execute_rowcount("UPDATE counted SET n = n + 1")
        # What was written is there for this thread's own connection as soon as `write` is left.
        assert (fetch_one("SELECT n FROM counted") or (0,))[0] >= 2
        assert id(connection.connection) != writer != own
        connections.close_all()
        return writer, 2

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(add, range(40)))
    assert len({writer for writer, _ in done}) == 1
    assert fetch_one("SELECT n FROM counted") == (80,)
    execute_rowcount("DROP TABLE counted")


def test_a_refused_write_leaves_nothing_and_the_connection_good(shared: None) -> None:
    from django.db import DatabaseError, IntegrityError, connections

    from crowdveil.broker.db.transactions import execute_rowcount, fetch_one, write_transaction

    own = connections["default"]
    execute_rowcount("CREATE TABLE named (name TEXT UNIQUE)")
    with pytest.raises(IntegrityError), write_transaction():
        assert [execute_rowcount("INSERT INTO named VALUES (%s)", name) for name in ("a", "a")]
    assert connections["default"] is own
    assert fetch_one("SELECT count(*) FROM named") == (0,)
    with pytest.raises(DatabaseError, match="no such table"), write_transaction():
        execute_rowcount("INSERT INTO nowhere VALUES (1)")
    with write_transaction():
        execute_rowcount("INSERT INTO named VALUES (%s)", "b")
    assert fetch_one("SELECT name FROM named") == ("b",)
    execute_rowcount("DROP TABLE named")


def test_a_broken_transaction_takes_no_further_statement(django_here: Path) -> None:
    from django.db import transaction
    from django.db.transaction import TransactionManagementError

    from crowdveil.broker.db.transactions import fetch_one, write_transaction

    with write_transaction():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            fetch_one("SELECT 1")
