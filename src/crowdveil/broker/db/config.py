"""Which database: SQLite beside the keys by default, PostgreSQL by its URL."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from crowdveil.errors import InputError

# WAL lets readers go on while one writes; FULL keeps every acknowledged submission through a power cut; secure_delete
# overwrites what a closed study or a withdrawal removes. Every thread has a connection and every connection a cache,
# which fills as the file grows; two megabytes each are enough, since the system caches the file, too.
_PRAGMAS = (
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON; "
    "PRAGMA foreign_keys=ON; PRAGMA cache_size=-2000;"
)


def database_settings(url: str, data_dir: Path) -> dict[str, Any]:
    """Django's settings for `postgresql://user:password@host:port/name` or, without a URL, for a file."""
    if not url:
        return _sqlite(data_dir / "crowdveil.sqlite3")
    try:
        parts = urlsplit(url)
        port = str(parts.port or "")
    except ValueError:
        raise InputError(
            "the port of --database must be a number from 1 to 65535, as in postgresql://user@host:5432/name",
            fix="correct it, or leave it out for 5432",
        ) from None
    if parts.scheme == "sqlite":
        return _sqlite(Path(unquote(parts.path)))
    if parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/"):
        raise InputError(
            f"--database must be postgresql://user@host:port/name; got {parts.scheme or 'no scheme'}",
            fix="leave it out for SQLite",
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": _host(parts),
        "PORT": port,
        "CONN_MAX_AGE": None,
        # Asked once a request: a database that was restarted has closed every thread's connection.
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": dict(parse_qsl(parts.query)),
    }


def _host(parts: SplitResult) -> str:
    """A name, an address, or the directory of a socket: %2Fvar%2Frun, whose letters keep their case."""
    written = parts.netloc.rpartition("@")[2].partition(":")[0]
    return unquote(written) if "%" in written else parts.hostname or ""


def _sqlite(path: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "CONN_MAX_AGE": None,
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 30, "init_command": _PRAGMAS},
    }
