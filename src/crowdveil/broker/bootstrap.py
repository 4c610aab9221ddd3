"""From nothing to a broker that can serve: secrets, schema and the first operator."""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import django
from django.core.management import call_command
from django.db import OperationalError, connections

from crowdveil.broker.db.roles import create_roles
from crowdveil.broker.keys import put_new
from crowdveil.errors import InputError
from crowdveil.files.folders import folder_for


@dataclass(frozen=True, slots=True)
class Place:
    """Where a broker keeps its things."""

    data_dir: Path
    database: str = ""

    def enter(self) -> None:
        """Point Django at this place. Once per process."""
        os.environ["CROWDVEIL_SECRET_KEY"] = _kept_secret(self.data_dir / "secret")
        os.environ["CROWDVEIL_DATA_DIR"] = str(self.data_dir)
        os.environ["CROWDVEIL_DATABASE"] = self.database
        os.environ["DJANGO_SETTINGS_MODULE"] = "crowdveil.broker.settings"
        django.setup()
        _make_database_private()


def _make_database_private() -> None:
    """The file of SQLite is for the broker's user only from its creation on; SQLite makes -wal and -shm like it."""
    database = connections.settings["default"]
    if not database["ENGINE"].endswith("sqlite3"):
        return
    path = Path(database["NAME"])
    with contextlib.suppress(OSError):
        # SQLite says in its own words, and Django in ours, what is wrong with a path that cannot be opened.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            with contextlib.suppress(FileNotFoundError):
                file.chmod(0o600)


def open_to_others(folder: Path) -> bool:
    """Whether other users of the machine may enter the folder."""
    return os.name == "posix" and bool(folder.stat().st_mode & 0o077)


def _kept_secret(path: Path) -> str:
    if not path.exists():
        with folder_for(path.parent, mode=0o700):
            put_new(path, secrets.token_hex(32).encode())
    return path.read_text()


def migrate() -> None:
    """Bring the schema up to date."""
    try:
        call_command("migrate", interactive=False, verbosity=0)
        create_roles()
    except OperationalError as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"the database cannot be reached: {reason}", fix="check --database") from None
    finally:
        connections.close_all()
