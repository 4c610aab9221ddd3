"""What a device remembers between runs: who it is, and every parcel it has made, sent or not."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS receipts (study TEXT PRIMARY KEY, title TEXT NOT NULL, receipt TEXT NOT NULL) STRICT;
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
