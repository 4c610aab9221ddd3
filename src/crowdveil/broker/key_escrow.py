"""Copies of the keys of open studies, encrypted for an operator's passphrase, in one file outside data and backups.

With it a broker restored on another machine goes on with its open studies. The broker only needs the public half to
add a key (X25519, HKDF, AES-256-GCM; the private half is scrypt of the passphrase), and no passphrase to erase one,
which it does when a study closes. Linkable studies are left out: the requester's panel key names their workers.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from django.conf import settings

from crowdveil.broker.db.transactions import KEY_ESCROW, in_line, write
from crowdveil.broker.keys import put_new, replace_file, study_key
from crowdveil.errors import FileError, InputError

FORMAT = "crowdveil-key-escrow/1"
MIN_PASSPHRASE = 12
# 128 MiB and a good third of a second for each guess (OWASP's parameters for scrypt).
_SCRYPT_N, _SCRYPT_R, _SCRYPT_P = 2**17, 8, 1
_log = logging.getLogger("crowdveil.key_escrow")


@dataclass(frozen=True, slots=True)
class Escrow:
    """What the file holds: whom the keys are encrypted for, and one sealed key per study."""

    salt: bytes
    public_key: bytes
    sealed: dict[str, str]

    def to_json(self) -> bytes:
        fields = {"format": FORMAT, "salt": self.salt.hex(), "public_key": self.public_key.hex(), "keys": self.sealed}
        return json.dumps(fields, indent=1).encode()


def create(path: Path, passphrase: str) -> None:
    """Write an empty escrow for this passphrase, and let this broker use it from now on."""
    if len(passphrase) < MIN_PASSPHRASE:
        raise InputError(f"the passphrase of a key escrow needs at least {MIN_PASSPHRASE} characters")
    salt = secrets.token_bytes(16)
    public_key = _private_key(passphrase, salt).public_key().public_bytes_raw()
    put_new(path, Escrow(salt, public_key, {}).to_json())


def use(path: Path) -> None:
    """Remember where this broker's escrow is: it must be there when a study closes."""
    if path.is_relative_to(settings.DATA_DIR):
        raise InputError("a key escrow must be outside the data directory", fix="it is for the day when that is lost")
    read(path)
    replace_file(_pointer(), str(path).encode())


def read(path: Path) -> Escrow:
    try:
        fields = json.loads(path.read_bytes())
        if fields["format"] != FORMAT:
            raise ValueError
        return Escrow(bytes.fromhex(fields["salt"]), bytes.fromhex(fields["public_key"]), dict(fields["keys"]))
    except FileNotFoundError:
        raise FileError(f"there is no key escrow {path}") from None
    except (ValueError, KeyError, TypeError):
        raise FileError(f"{path} is not a key escrow") from None


def put(study: str) -> None:
    """Add the key of a study that opens."""
    _change(lambda escrow: replace(escrow, sealed=escrow.sealed | {study: _seal(escrow, study)}))


def erase(study: str) -> None:
    """Erase the key of a study that closes."""
    _change(lambda escrow: replace(escrow, sealed=_without(escrow.sealed, study)))


def synchronize(open_studies: set[str]) -> None:
    """At a start: erase what could not be erased while the file was away, and add what is missing."""

    def bring_up_to_date(escrow: Escrow) -> Escrow:
        missing = {study: _seal(escrow, study) for study in open_studies - set(escrow.sealed)}
        still_open = {study: sealed for study, sealed in escrow.sealed.items() if study in open_studies}
        return replace(escrow, sealed=still_open | missing)

    _change(bring_up_to_date)


def open_keys(path: Path, passphrase: str) -> dict[str, bytes]:
    """The key of every study in the escrow."""
    escrow = read(path)
    private = _private_key(passphrase, escrow.salt)
    if private.public_key().public_bytes_raw() != escrow.public_key:
        raise InputError("the passphrase does not open this key escrow")
    try:
        return {study: _unseal(private, study, bytes.fromhex(sealed)) for study, sealed in escrow.sealed.items()}
    except (InvalidTag, ValueError):
        raise FileError(f"{path} is damaged") from None


def _private_key(passphrase: str, salt: bytes) -> X25519PrivateKey:
    derive = Scrypt(salt=salt, length=32, n=_SCRYPT_N, r=_SCRYPT_R, p=_SCRYPT_P).derive
    return X25519PrivateKey.from_private_bytes(derive(passphrase.encode()))


def _seal(escrow: Escrow, study: str) -> str:
    key = study_key(study)
    if key is None:
        raise FileError(f"the key of study {study} is destroyed")
    ephemeral = X25519PrivateKey.generate()
    public = ephemeral.public_key().public_bytes_raw()
    shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(escrow.public_key))
    # The cipher's key is used once, so a fixed nonce is safe.
    return (public + _cipher(shared, public).encrypt(bytes(12), key, study.encode())).hex()


def _unseal(private: X25519PrivateKey, study: str, sealed: bytes) -> bytes:
    shared = private.exchange(X25519PublicKey.from_public_bytes(sealed[:32]))
    return _cipher(shared, sealed[:32]).decrypt(bytes(12), sealed[32:], study.encode())


def _cipher(shared: bytes, ephemeral: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, salt=ephemeral, info=FORMAT.encode()).derive(shared))


def _without(sealed: dict[str, str], study: str) -> dict[str, str]:
    return {other: entry for other, entry in sealed.items() if other != study}


def _pointer() -> Path:
    return Path(settings.DATA_DIR) / "key-escrow"


def _change(change: Callable[[Escrow], Escrow]) -> None:
    """Rewrite the file, one process at a time, and overwrite what it held before."""
    try:
        path = Path(_pointer().read_text())
    except FileNotFoundError:
        return
    try:
        with write():
            in_line(KEY_ESCROW)
            with path.open("r+b") as old:
                replace_file(path, change(read(path)).to_json())
                _overwrite(old.fileno())
    except (OSError, FileError) as error:
        # A study must close all the same; the next start with the file in its place erases its key.
        _log.warning("the key escrow could not be changed", extra={"error": type(error).__name__})


def _overwrite(file: int) -> None:
    with contextlib.suppress(OSError):
        os.pwrite(file, secrets.token_bytes(os.fstat(file).st_size), 0)
        os.fsync(file)
