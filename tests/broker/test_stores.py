"""On PostgreSQL each store has a role of its own, and a role sees its own store only."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

TABLES = {
    "identity": "identity_account",
    "ledger": "ledger_budget",
    "payments": "payments_earning",
    "intake": "intake_submission",
    "pools": "pools_batch",
}


@pytest.mark.parametrize("role", TABLES)
def test_a_role_reads_its_own_store_and_no_other(postgres_server: Any, role: str) -> None:
    with psycopg.connect(postgres_server.database, autocommit=True) as connection:
        connection.execute(f"SET ROLE crowdveil_{role}")
        for store, table in TABLES.items():
            if store == role:
                connection.execute(f"SELECT count(*) FROM {table}")
                continue
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"SELECT count(*) FROM {table}")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"DELETE FROM {table}")
