"""Separate database roles for the separated stores, entered one after the other inside the one transaction.

On PostgreSQL the statement that stores reports runs as a role that cannot read accounts, and the one that books money
as a role that cannot read reports. SQLite has no roles, and a PostgreSQL user who may not create any goes without.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.backends.utils import CursorWrapper

STORES = ("identity", "ledger", "payments", "intake", "pools")


def role_name(store: str) -> str:
    return f"crowdveil_{store}"


def create_roles() -> bool:
    """Make the roles and give each the tables of its store, and nothing else; False where that is not possible."""
    if connection.vendor != "postgresql":
        return False
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            for store in STORES:
                _create_role(cursor, store)
    except DatabaseError:
        return False
    return True


def _create_role(cursor: CursorWrapper, store: str) -> None:
    role, execute = role_name(store), cursor.execute
    execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
    if cursor.fetchone() is None:
        execute(f"CREATE ROLE {role} NOLOGIN")
        execute(f"GRANT {role} TO CURRENT_USER")
    execute(f"GRANT USAGE ON SCHEMA public TO {role}")
    for model in apps.get_app_config(store).get_models():
        execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {model._meta.db_table} TO {role}")


@lru_cache(maxsize=1)
def roles_enabled() -> bool:
    """Whether the roles are there; they are made when the schema is, so this is asked once."""
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_roles WHERE rolname = ANY(%s)", [[role_name(store) for store in STORES]]
        )
        return int(cursor.fetchone()[0]) == len(STORES)


@contextmanager
def as_role(store: str) -> Iterator[None]:
    """Run statements as the store's role, within a transaction, until the next store is entered or it ends.

    The role is not left in between: a way back and forth for every store would double what the database is asked.
    """
    if roles_enabled():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL ROLE {role_name(store)}")
    yield
