"""What a device remembers between runs: who it is, its receipts, and the public log as it saw it."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS receipts (study TEXT PRIMARY KEY, title TEXT NOT NULL, receipt TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS labelled (
    study TEXT NOT NULL, task INTEGER NOT NULL, batch TEXT NOT NULL, PRIMARY KEY (study, task)
) STRICT;
CREATE TABLE IF NOT EXISTS log (number INTEGER PRIMARY KEY, entry TEXT NOT NULL) STRICT;
"""


class Memory:
    """A small SQLite file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        path.touch(mode=0o600)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        self._connection.close()

    def fact(self, name: str) -> str | None:
        with self._lock:
            row = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
            return row[0] if row else None

    def remember(self, name: str, value: str) -> None:
        with self._lock:
            self._connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def forget(self, name: str) -> None:
        with self._lock:
            self._connection.execute("DELETE FROM facts WHERE name = ?", (name,))

    def log_head(self) -> tuple[int, str]:
        """The last line of the public log that this device has seen: its number and hash; 0 before the first."""
        with self._lock:
            row = self._connection.execute("SELECT number, entry FROM log ORDER BY number DESC LIMIT 1").fetchone()
            return row or (0, "")

    def log_entry(self, number: int) -> str | None:
        with self._lock:
            row = self._connection.execute("SELECT entry FROM log WHERE number = ?", (number,)).fetchone()
            return row[0] if row else None

    def keep_log(self, lines: list[tuple[int, str]]) -> None:
        """Numbers and hashes of checked lines, all or none."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR IGNORE INTO log VALUES (?, ?)", lines)
            self._connection.execute("COMMIT")

    def keep_labelled(self, study: str, batch: str, tasks: list[int]) -> list[int]:
        """Remember in which batch tasks are labelled; those that another batch had before are returned instead."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            find = "SELECT batch FROM labelled WHERE study = ? AND task = ?"
            before = {task: self._connection.execute(find, (study, task)).fetchone() for task in tasks}
            again = [task for task, row in before.items() if row is not None and row[0] != batch]
            if not again:
                rows = [(study, task, batch) for task in tasks]
                self._connection.executemany("INSERT OR IGNORE INTO labelled VALUES (?, ?, ?)", rows)
            self._connection.execute("COMMIT")
            return again

    def keep_receipt(self, study: str, title: str, receipt: str) -> None:
        with self._lock:
            self._connection.execute("INSERT OR IGNORE INTO receipts VALUES (?, ?, ?)", (study, title, receipt))

    def receipt(self, study: str) -> str | None:
        with self._lock:
            row = self._connection.execute("SELECT receipt FROM receipts WHERE study = ?", (study,)).fetchone()
            return row[0] if row else None

    def receipts(self) -> list[str]:
        with self._lock:
            return [row[0] for row in self._connection.execute("SELECT receipt FROM receipts ORDER BY study")]
