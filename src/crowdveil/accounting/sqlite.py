"""A ledger in one SQLite file: the memory of a device, which outlives its process and is shared by several.

One conditional UPDATE inside BEGIN IMMEDIATE decides; triggers make the tables append-only for everyone who opens them.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from crowdveil.accounting.nano import SATURATED
from crowdveil.accounting.storage import NOTHING, Charge, Receipt
from crowdveil.errors import FileError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS spent (
    worker TEXT PRIMARY KEY, epsilon INTEGER NOT NULL, rho INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS receipts (
    worker TEXT NOT NULL, number INTEGER NOT NULL, key TEXT NOT NULL,
    epsilon INTEGER NOT NULL, rho INTEGER NOT NULL, lines TEXT NOT NULL,
    PRIMARY KEY (worker, number), UNIQUE (worker, key)
) STRICT;
CREATE TABLE IF NOT EXISTS reports (
    worker TEXT NOT NULL, key TEXT NOT NULL, report TEXT NOT NULL, PRIMARY KEY (worker, key)
) STRICT;
CREATE TRIGGER IF NOT EXISTS spent_never_falls BEFORE UPDATE ON spent
    WHEN new.epsilon < old.epsilon OR new.rho < old.rho
    BEGIN SELECT raise(ABORT, 'a ledger never falls'); END;
CREATE TRIGGER IF NOT EXISTS spent_is_never_removed BEFORE DELETE ON spent
    BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS receipts_never_change BEFORE UPDATE ON receipts
    BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS receipts_are_never_removed BEFORE DELETE ON receipts
    BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS reports_never_change BEFORE UPDATE ON reports
    BEGIN SELECT raise(ABORT, 'a report is drawn once'); END;
CREATE TRIGGER IF NOT EXISTS reports_are_never_removed BEFORE DELETE ON reports
    BEGIN SELECT raise(ABORT, 'a report is drawn once'); END;
CREATE TRIGGER IF NOT EXISTS spent_is_never_replaced BEFORE INSERT ON spent
    WHEN EXISTS (SELECT 1 FROM spent WHERE worker = new.worker)
    BEGIN SELECT raise(ABORT, 'a ledger never falls'); END;
CREATE TRIGGER IF NOT EXISTS receipts_are_never_replaced BEFORE INSERT ON receipts
    WHEN EXISTS (SELECT 1 FROM receipts WHERE worker = new.worker AND (key = new.key OR number = new.number))
    BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS reports_are_never_replaced BEFORE INSERT ON reports
    WHEN EXISTS (SELECT 1 FROM reports WHERE worker = new.worker AND key = new.key)
    BEGIN SELECT raise(ABORT, 'a report is drawn once'); END;
"""
# REPLACE removes rows without firing their DELETE triggers, hence the guards on INSERT.

_FIX = "make room on the disk, or put back the newest copy of the file"

_CHARGE = """
UPDATE spent SET epsilon = min(epsilon + :epsilon, :saturated), rho = min(rho + :rho, :saturated)
WHERE worker = :worker AND (:always OR epsilon + :epsilon <= :cap_epsilon OR rho + :rho <= :cap_rho)
"""


# Sums as doubles: those below 2^52 are exact, and where many saturated charges meet, integers would overflow.
_CHANGED = """
WITH sums AS (SELECT worker, min(total(epsilon), :most) AS epsilon, min(total(rho), :most) AS rho
              FROM receipts GROUP BY worker)
SELECT worker FROM spent LEFT JOIN sums USING (worker)
WHERE spent.epsilon <> coalesce(sums.epsilon, 0) OR spent.rho <> coalesce(sums.rho, 0)
UNION ALL SELECT worker FROM sums WHERE worker NOT IN (SELECT worker FROM spent) LIMIT 1
"""


class SqliteStorage:
    """Open, or create, the ledger at `path`. Use it as a context manager or call `close`.

    A file that is damaged, or whose sums are not those of its receipts, is refused.
    """

    def __init__(self, path: str | Path) -> None:
        self._lock, self._name = threading.Lock(), Path(path).name
        _create(path)
        with self._translate_errors():
            self._connection = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            # FULL: a charge is on the disk before the noise is drawn, even if the power fails right after.
            self._connection.execute("PRAGMA synchronous = FULL")
        try:
            with self._transaction():
                self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        for statement in _statements(_SCHEMA):
            self._connection.execute(statement)
        if self._connection.execute(_CHANGED, {"most": SATURATED}).fetchone() is not None:
            raise FileError(f"the ledger {self._name} was changed: its sums are not those of its receipts", fix=_FIX)

    def __enter__(self) -> SqliteStorage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def record(self, receipt: Receipt, cap: Charge | None) -> Receipt | None:
        with self._transaction():
            if (stored := self._find_receipt(receipt.worker, receipt.key)) is not None:
                return stored
            if self._one("SELECT 1 FROM spent WHERE worker = ?", receipt.worker) is None:
                self._execute("INSERT INTO spent VALUES (?, 0, 0)", receipt.worker)
            if self._connection.execute(_CHARGE, _values(receipt, cap)).rowcount != 1:
                return None
            (last,) = self._one("SELECT coalesce(max(number), 0) FROM receipts WHERE worker = ?", receipt.worker)
            numbered = replace(receipt, number=last + 1)
            self._insert(numbered)
            return numbered

    def spent(self, worker: str) -> Charge:
        with self._lock, self._translate_errors():
            row = self._one("SELECT epsilon, rho FROM spent WHERE worker = ?", worker)
            return Charge(*row) if row else NOTHING

    def receipts(self, worker: str) -> tuple[Receipt, ...]:
        with self._lock, self._translate_errors():
            rows = self._execute(f"{_SELECT} WHERE worker = ? ORDER BY number", worker).fetchall()
            return tuple(_receipt(row) for row in rows)

    def keep(self, worker: str, key: str, report: str) -> str:
        with self._transaction():
            stored = self._report(worker, key)
            if stored is None:
                self._execute("INSERT INTO reports VALUES (?, ?, ?)", worker, key, report)
            return report if stored is None else stored

    def kept(self, worker: str, key: str) -> str | None:
        with self._lock, self._translate_errors():
            return self._report(worker, key)

    def _report(self, worker: str, key: str) -> str | None:
        row = self._one("SELECT report FROM reports WHERE worker = ? AND key = ?", worker, key)
        return str(row[0]) if row else None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, self._translate_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # A full disk has undone everything by itself.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """What the database complains about, in one sentence."""
        try:
            yield
        except sqlite3.Error as error:
            raise FileError(f"the ledger {self._name} cannot be used: {error}", fix=_FIX) from error

    def _find_receipt(self, worker: str, key: str) -> Receipt | None:
        row = self._one(f"{_SELECT} WHERE worker = ? AND key = ?", worker, key)
        return _receipt(row) if row else None

    def _insert(self, receipt: Receipt) -> None:
        charge, identity = receipt.charge, (receipt.worker, receipt.number, receipt.key)
        values = (*identity, charge.epsilon, charge.rho, receipt.serialize_lines())
        self._execute("INSERT INTO receipts VALUES (?, ?, ?, ?, ?, ?)", *values)

    def _execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)

    def _one(self, statement: str, *values: object) -> Any:
        return self._execute(statement, *values).fetchone()


def _create(path: str | Path) -> None:
    """Only its owner may read it, from the first moment: it keeps the keys to withdraw. SQLite's journals follow it."""
    with suppress(OSError):  # SQLite says what is wrong with the place, and what is there stays as its owner made it.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


_SELECT = "SELECT worker, key, epsilon, rho, lines, number FROM receipts"


def _receipt(row: tuple[Any, ...]) -> Receipt:
    worker, key, epsilon, rho, lines, number = row
    return Receipt(worker, key, Charge(epsilon, rho), Receipt.lines_from(lines), number)


def _values(receipt: Receipt, cap: Charge | None) -> dict[str, object]:
    ceiling = cap or NOTHING
    return {
        "worker": receipt.worker,
        "epsilon": receipt.charge.epsilon,
        "rho": receipt.charge.rho,
        "cap_epsilon": ceiling.epsilon,
        "cap_rho": ceiling.rho,
        "always": cap is None,
        "saturated": SATURATED,
    }


def _statements(script: str) -> Iterator[str]:
    """The script's statements one by one: executescript would commit the transaction it runs in."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
