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

    from crowdveil.broker.db.transactions import changed, row, write

    changed("CREATE TABLE counted (n INTEGER)")
    changed("INSERT INTO counted VALUES (0)")

    def add(_: int) -> tuple[int, int]:
        own = id(connection.connection)
        with write():
            writer = id(connections["default"])
            changed("UPDATE counted SET n = n + 1")
            with write():
                changed("UPDATE counted SET n = n + 1")
        # What was written is there for this thread's own connection as soon as `write` is left.
        assert (row("SELECT n FROM counted") or (0,))[0] >= 2
        assert id(connection.connection) != writer != own
        connections.close_all()
        return writer, 2

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(add, range(40)))
    assert len({writer for writer, _ in done}) == 1
    assert row("SELECT n FROM counted") == (80,)
    changed("DROP TABLE counted")


def test_a_refused_write_leaves_nothing_and_the_connection_good(shared: None) -> None:
    from django.db import DatabaseError, IntegrityError, connections

    from crowdveil.broker.db.transactions import changed, row, write

    own = connections["default"]
    changed("CREATE TABLE named (name TEXT UNIQUE)")
    with pytest.raises(IntegrityError), write():
        assert [changed("INSERT INTO named VALUES (%s)", name) for name in ("a", "a")]
    assert connections["default"] is own
    assert row("SELECT count(*) FROM named") == (0,)
    with pytest.raises(DatabaseError, match="no such table"), write():
        changed("INSERT INTO nowhere VALUES (1)")
    with write():
        changed("INSERT INTO named VALUES (%s)", "b")
    assert row("SELECT name FROM named") == ("b",)
    changed("DROP TABLE named")


def test_a_broken_transaction_takes_no_further_statement(django_here: Path) -> None:
    from django.db import transaction
    from django.db.transaction import TransactionManagementError

    from crowdveil.broker.db.transactions import row, write

    with write():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            row("SELECT 1")
