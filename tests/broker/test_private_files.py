"""What other users of the machine can read: nothing of the broker's, and no TOTP secret even with the database."""

from __future__ import annotations

import base64
import os
import secrets
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from broker.conftest import SOURCE

OPEN = stat.S_IRWXG | stat.S_IRWXO


def open_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.stat().st_mode & OPEN)


def test_files_in_an_open_directory_are_private_from_their_creation(make_server: Any, homes: Path) -> None:
    home = homes / "open to all"
    home.mkdir(mode=0o755)
    server = make_server(home=home)
    server.requester("private")
    names = {path.name for path in home.iterdir()}
    assert {"crowdveil.sqlite3", "crowdveil.sqlite3-wal", "crowdveil.sqlite3-shm", "totp.key"} <= names
    # The log is this test's own.
    assert open_files(home) == ["server.log"]
    assert "other users may enter" in server.log_path.read_text()
    backup = home / "broker.backup.gz"
    command = [sys.executable, "-m", "crowdveil", "backup", "-o", str(backup), "--data-dir", str(home)]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": str(SOURCE)}, capture_output=True)
    assert open_files(home) == ["server.log"]


def test_a_private_directory_is_no_matter_of_a_warning(sqlite_server: Any) -> None:
    assert "other users may enter" not in sqlite_server.log_path.read_text()


def test_a_database_that_was_readable_is_made_private(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from crowdveil.broker.bootstrap import BrokerEnvironment, migrate; "
        "BrokerEnvironment(Path(sys.argv[1])).enter(); migrate()"
    )
    database = tmp_path / "crowdveil.sqlite3"
    database.touch()
    database.chmod(0o644)
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, env=environment)
    assert open_files(tmp_path) == []


def test_totp_secrets_are_encrypted_with_a_key_outside_the_database(django_here: Path) -> None:
    from crowdveil.broker.identity import sign_in as signing
    from crowdveil.broker.identity import totp_secrets
    from crowdveil.broker.identity.accounts import invite

    account, _ = invite(f"lab {secrets.token_hex(4)}", "requester", by="")
    secret = signing.enrol(account, "a lasting password")
    account.refresh_from_db()
    for path in django_here.glob("crowdveil.sqlite3*"):
        content = path.read_bytes()
        assert secret.encode() not in content
        assert base64.b32decode(secret) not in content
    assert totp_secrets.decrypt(account.id, account.totp_secret) == secret
    assert totp_secrets.encrypt(account.id, secret) != account.totp_secret
    # Copied to another account, under another key, or never encrypted: no secret, hence no code that fits.
    assert totp_secrets.decrypt("f" * 32, account.totp_secret) is None
    assert totp_secrets.decrypt(account.id, secret) is None


def test_without_its_key_no_code_fits(django_here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from broker.scene import refused

    from crowdveil.broker import clock, keys
    from crowdveil.broker.identity import sign_in as signing
    from crowdveil.broker.identity import totp
    from crowdveil.broker.identity.accounts import invite

    account, _ = invite(f"lab {secrets.token_hex(4)}", "requester", by="")
    secret = signing.enrol(account, "a lasting password")
    account.refresh_from_db()
    monkeypatch.setattr(keys, "totp_key", lambda: bytes(32))
    for guess in (secret, ""):
        with refused("invalid"):
            signing.confirm(account, totp.code_at(guess, totp.step_at(clock.now().timestamp())))


def test_secrets_of_an_older_version_are_encrypted_once(django_here: Path) -> None:
    from crowdveil.broker.identity import totp, totp_secrets
    from crowdveil.broker.identity.models import Account

    secret = totp.new_secret()
    account = Account.objects.create(role="requester", name=f"lab {secrets.token_hex(4)}", totp_secret=secret)
    for _ in range(2):
        totp_secrets.encrypt_plain_secrets(Account)
    account.refresh_from_db()
    assert totp_secrets.decrypt(account.id, account.totp_secret) == secret


def test_the_migration_encrypts_secrets_of_an_older_version(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from crowdveil.broker.bootstrap import BrokerEnvironment
BrokerEnvironment(Path(sys.argv[1])).enter()
from django.core.management import call_command
from django.db import connection
call_command("migrate", "identity", "0002", verbosity=0)
fields = dict(id="a", role="operator", password="", one_time_password=False, totp_secret="JBSWY3DPEHPK3PXP",
    totp_confirmed=True, totp_step=0, failed_sign_ins=0, disabled=False, default_level="low",
    payee="p", joined="2026-01-01")
with connection.cursor() as cursor:
    marks = ", ".join(["%s"] * len(fields))
    cursor.execute(f"INSERT INTO identity_account ({', '.join(fields)}) VALUES ({marks})", [*fields.values()])
call_command("migrate", verbosity=0)
from crowdveil.broker.identity.models import Account
from crowdveil.broker.identity.totp_secrets import decrypt
print(decrypt("a", Account.objects.get().totp_secret))
"""
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "JBSWY3DPEHPK3PXP"
    assert all(b"JBSWY3DPEHPK3PXP" not in path.read_bytes() for path in tmp_path.glob("crowdveil.sqlite3*"))
