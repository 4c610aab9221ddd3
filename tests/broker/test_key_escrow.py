"""Open studies outlive their machine where an operator chose a key escrow, and closing erases their keys from it."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker import plain
from broker.conftest import SOURCE, Server, draft, new_home
from broker.scene import Scene
from broker.test_races import submission

PASSPHRASE = "correct horse battery staple"


def crowdveil(*arguments: object, passphrase: str = PASSPHRASE) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "CROWDVEIL_ESCROW_PASSPHRASE": passphrase}
    command = [sys.executable, "-m", "crowdveil", *map(str, arguments)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def submit(server: Server, token: str, study: str) -> int:
    signed = server.broker().call("GET", f"/studies/{study}")
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": secrets.token_hex(16)}
    body = submission(signed["definition"], signed["sha256"])
    url = f"{server.address}/api/v1/studies/{study}/submissions"
    return plain.post(url, json=body, headers=headers, timeout=30).status_code


def test_a_restored_broker_goes_on_with_studies_whose_keys_are_in_the_escrow(homes: Path) -> None:
    old_home, place, escrow = new_home(homes, "old"), new_home(homes, "restored"), new_home(homes, "usb") / "escrow"
    server = Server(old_home, "", "--key-escrow", str(escrow), CROWDVEIL_ESCROW_PASSPHRASE=PASSPHRASE)
    try:
        requester = server.requester("escrowed")
        study, ending, linkable = (requester.create(draft(linkable=each)) for each in (False, False, True))
        for each in (study, ending, linkable):
            requester.open(each)
        assert set(json.loads(escrow.read_text())["keys"]) == {study, ending}
        requester.close(ending)
        assert set(json.loads(escrow.read_text())["keys"]) == {study}
        assert escrow.stat().st_mode & 0o077 == 0
        assert (old_home / "study-keys" / study).read_bytes().hex() not in escrow.read_text()
        answered, late = server.worker_token(), server.worker_token()
        assert submit(server, answered, study) == 201
        backup = escrow.with_name("all.gz")
        assert crowdveil("backup", "-o", backup, "--data-dir", old_home).returncode == 0
        assert requester.progress(study)["taken"] == 1
        requester_token = requester._broker.token
    finally:
        server.end()

    options = ("restore", backup, "--data-dir", place, "--key-escrow", escrow, "--json")
    refused = crowdveil(*options, passphrase="another passphrase")
    assert (refused.returncode, refused.stdout) == (2, "")
    restored = crowdveil(*options)
    assert json.loads(restored.stdout)["closed"] == [linkable]
    assert f"keys of these open studies are gone: {linkable}" in restored.stderr

    server = Server(place)
    try:
        assert submit(server, answered, study) == 409
        assert submit(server, late, study) == 201
        server.broker(requester_token).call("POST", f"/requester/studies/{study}/close")
        assert json.loads(escrow.read_text())["keys"] == {}
    finally:
        server.end()


@pytest.fixture
def escrow(django_here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    from crowdveil.broker import key_escrow

    monkeypatch.setattr(key_escrow, "_SCRYPT_N", 2**4)
    key_escrow.create(tmp_path / "escrow", PASSPHRASE)
    key_escrow.use(tmp_path / "escrow")
    yield tmp_path / "escrow"
    (django_here / "key-escrow").unlink()


def test_the_escrow_opens_with_its_passphrase_only(escrow: Path, django_here: Path) -> None:
    from crowdveil.broker import key_escrow, keys
    from crowdveil.errors import InputError

    study = Scene(draft()).study.id
    assert key_escrow.open_keys(escrow, PASSPHRASE)[study] == keys.study_key(study)
    with pytest.raises(InputError, match="does not open"):
        key_escrow.open_keys(escrow, PASSPHRASE + "!")
    with pytest.raises(InputError, match="at least 12"):
        key_escrow.create(escrow.with_name("other"), "short")
    key_escrow.create(django_here / "inside", PASSPHRASE)
    with pytest.raises(InputError, match="outside the data directory"):
        key_escrow.use(django_here / "inside")


def test_a_study_that_closes_while_the_escrow_is_away_is_erased_at_the_next_start(escrow: Path) -> None:
    from crowdveil.broker import key_escrow, keys
    from crowdveil.broker.studies import lifecycle

    closing, staying = Scene(draft(minimum_n=2)), Scene(draft())
    away = escrow.rename(escrow.with_name("unmounted"))
    lifecycle.close(closing.study)
    assert not keys.has_study_key(closing.study.id)
    away.rename(escrow)
    assert closing.study.id in key_escrow.read(escrow).sealed
    lifecycle.synchronize_escrow()
    sealed = key_escrow.read(escrow).sealed
    assert closing.study.id not in sealed
    assert staying.study.id in sealed


def test_what_the_escrow_held_before_is_overwritten(escrow: Path) -> None:
    from crowdveil.broker import key_escrow

    study = Scene(draft()).study.id
    entry = key_escrow.read(escrow).sealed[study]
    # A second name for the same file shows what becomes of its bytes.
    os.link(escrow, before := escrow.with_name("before"))
    key_escrow.erase(study)
    assert entry.encode() not in before.read_bytes()


def test_without_an_escrow_nothing_is_copied(django_here: Path, make_draft: Any) -> None:
    Scene(make_draft())
    assert not (django_here / "key-escrow").exists()
