"""Forward: a database of an earlier schema, with everything in it, is brought up to date by the next start.

`fixtures/schema-0001.json` was written by the code of the first schema: every row, the keys beside the database, three
tokens, and one submission with the receipt it was given then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker import plain

OLD = json.loads((Path(__file__).parent / "fixtures" / "schema-0001.json").read_text())
ALIAS = "old"


@pytest.fixture(params=["sqlite", "postgres"])
def old_place(request: pytest.FixtureRequest, django_here: Path, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A data directory and a database as the first schema left them."""
    from django.core.management import call_command
    from django.db import connections, transaction
    from django.db.utils import ConnectionHandler

    from crowdveil.broker.db.config import database_settings

    url = "" if request.param == "sqlite" else request.getfixturevalue("postgres").new_database()
    for name, content in OLD["keys"].items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(bytes.fromhex(content))
    connections.settings[ALIAS] = ConnectionHandler({"default": database_settings(url, tmp_path)}).settings["default"]
    for store in sorted({table.partition("_")[0] for table in OLD["tables"]}):
        call_command("migrate", store, "0001", database=ALIAS, verbosity=0)
    with transaction.atomic(using=ALIAS), connections[ALIAS].cursor() as cursor:
        for table, content in OLD["tables"].items():
            columns = ", ".join(f'"{column}"' for column in content["columns"])
            places = ", ".join("%s" for _ in content["columns"])
            for row in content["rows"]:
                cursor.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", [_value(cell) for cell in row])
    connections[ALIAS].close()
    yield tmp_path, url
    connections[ALIAS].close()
    del connections[ALIAS], connections.settings[ALIAS]


def _value(cell: Any) -> Any:
    return bytes.fromhex(cell[4:]) if isinstance(cell, str) and cell.startswith("hex:") else cell


def _spelled(cell: Any) -> Any:
    """A cell as the file spells it, whichever database it comes from."""
    if isinstance(cell, bytes | memoryview):
        return f"hex:{bytes(cell).hex()}"
    if hasattr(cell, "tzinfo") and hasattr(cell, "hour"):
        return cell.replace(tzinfo=None).isoformat(" ")
    return cell.isoformat() if hasattr(cell, "isoformat") else cell


def test_an_old_database_is_upgraded_with_everything_in_it(old_place: tuple[Path, str], make_server: Any) -> None:
    home, url = old_place
    server = make_server(url, home=home)
    api = {
        role: plain.Client(base_url=f"{server.address}/api/v1", headers={"Authorization": f"Bearer {token}"})
        for role, token in OLD["tokens"].items()
    }
    assert api["operator"].get("/operator/ledger-check").json() == {"holds": True, "problems": []}
    assert api["operator"].get("/operator/audit").json()["broken_at"] is None

    sent = OLD["submission"]
    path, headers = f"/studies/{OLD['open']}/submissions", {"Idempotency-Key": sent["idempotency_key"]}
    again = api["worker"].post(path, json=sent["body"], headers=headers)
    assert (again.status_code, again.json()) == (200, sent["receipt"])

    # Five answered, one withdrew after closing: what was shown stays, or the difference would be that one.
    closed = f"/requester/studies/{OLD['closed']}"
    shown = api["requester"].get(f"{closed}/results").json()
    assert (shown["n"], shown["batch"]) == (5, 1)
    assert api["requester"].get(f"{closed}/exports/0").text.count("\n") == 1 + 4
    assert api["requester"].post(f"/requester/studies/{OLD['open']}/close").json()["state"] == "closed"
    for client in api.values():
        client.close()


def test_migrating_keeps_every_old_cell(old_place: tuple[Path, str]) -> None:
    from django.core.management import call_command
    from django.db import connections

    call_command("migrate", database=ALIAS, verbosity=0)
    with connections[ALIAS].cursor() as cursor:
        for table, content in OLD["tables"].items():
            columns = ", ".join(f'"{column}"' for column in content["columns"])
            cursor.execute(f"SELECT {columns} FROM {table}")
            found = [[_spelled(cell) for cell in row] for row in cursor.fetchall()]
            assert sorted(map(repr, found)) == sorted(map(repr, content["rows"])), table
        cursor.execute("SELECT number, final FROM results_batch")
        assert [(number, bool(final)) for number, final in cursor.fetchall()] == [(1, True)]
    call_command("migrate", check_unapplied=True, database=ALIAS, verbosity=0)
