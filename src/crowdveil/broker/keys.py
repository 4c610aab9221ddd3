"""Keys that live beside the database and never in it, so that no copy of the database carries them.

The signing key names this broker. A study key turns worker ids into that study's pseudonyms; it is destroyed when the
study closes, and then nobody can link a report to a worker again.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings

from crowdveil.broker.problems import Refusal
from crowdveil.canonical_json import canonical


@contextlib.contextmanager
def _written(path: Path, content: bytes) -> Iterator[Path]:
    """A temporary file beside `path` with this content, on the disk, for the broker's user only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def put_new(path: Path, content: bytes) -> None:
    """The file appears whole or not at all, and the first of two at once wins: nobody ever reads half a key."""
    with _written(path, content) as temporary, contextlib.suppress(FileExistsError):
        os.link(temporary, path)


def replace_file(path: Path, content: bytes) -> None:
    """Whoever reads the file gets the old content or the new one, also after a power cut."""
    with _written(path, content) as temporary:
        temporary.replace(path)


def _secret(name: str, *, create: bool) -> bytes | None:
    """32 random bytes kept in a file that only the broker's user can read."""
    found = _content(name)
    if found is not None or not create:
        return found
    put_new(Path(settings.DATA_DIR) / name, secrets.token_bytes(32))
    return _content(name)


def _content(name: str) -> bytes | None:
    """The file's bytes by the shortest way: every submission reads a key."""
    try:
        handle = os.open(f"{settings.DATA_DIR}/{name}", os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return os.read(handle, 64)
    finally:
        os.close(handle)


@lru_cache(maxsize=1)
def _signer() -> Ed25519PrivateKey:
    seed = _secret("signing.key", create=True)
    assert seed is not None
    return Ed25519PrivateKey.from_private_bytes(seed)


def signing_seed() -> bytes:
    """For backups: a restored broker must be recognised by the devices that know it."""
    _signer()
    return (Path(settings.DATA_DIR) / "signing.key").read_bytes()


def put_signing_seed(seed: bytes) -> None:
    path = Path(settings.DATA_DIR) / "signing.key"
    path.unlink(missing_ok=True)
    put_new(path, seed)
    _signer.cache_clear()


def public_key() -> str:
    return _signer().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def sign(value: object) -> str:
    """The Ed25519 signature of the canonical JSON, in hexadecimal."""
    return _signer().sign(canonical(value)).hex()


def totp_key() -> bytes:
    """What the secrets of authenticators are encrypted with."""
    key = _secret("totp.key", create=True)
    assert key is not None
    return key


def put_totp_key(key: bytes) -> None:
    replace_file(Path(settings.DATA_DIR) / "totp.key", key)


def create_study_key(study: str) -> None:
    _secret(f"study-keys/{study}", create=True)


def has_study_key(study: str) -> bool:
    return (Path(settings.DATA_DIR) / "study-keys" / study).exists()


def study_key(study: str) -> bytes | None:
    """For the escrow only; None once the key is destroyed."""
    return _secret(f"study-keys/{study}", create=False)


def put_study_key(study: str, key: bytes) -> None:
    put_new(Path(settings.DATA_DIR) / "study-keys" / study, key)


# Read anew for each pseudonym: a key in memory would outlive its destruction.
def pseudonym(study: str, account: str) -> str:
    """What this worker is called in this study, and nowhere else."""
    return _named(f"study-keys/{study}", account)


def panel_pseudonym(requester: str, account: str) -> str:
    """What this worker is called in all *linkable* studies of one requester; workers are told before joining."""
    _secret(f"panel-keys/{requester}", create=True)
    return _named(f"panel-keys/{requester}", account)


def _named(key: str, account: str) -> str:
    secret = _secret(key, create=False)
    if secret is None:
        raise Refusal("not-open", "this study is closed: the key that named its workers is destroyed")
    return hmac.digest(secret, account.encode(), "sha256").hex()


def destroy_study_key(study: str) -> None:
    """Overwrite and remove the key. What was named by it can no longer be linked to a worker."""
    path = Path(settings.DATA_DIR) / "study-keys" / study
    if not path.exists():
        return
    with path.open("r+b") as file:
        file.write(secrets.token_bytes(32))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
