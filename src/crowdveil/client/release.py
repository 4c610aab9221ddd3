"""The device code's release manifest: the hash of every file, signed with a key that is not in the repository.

`tools/release_device.py` writes it; `crowdveil verify-client` compares a running server with it; the broker sends the
headers it names.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from crowdveil.canonical_json import canonical
from crowdveil.errors import FileError

FORMAT = "crowdveil-device-manifest/1"
DEVICE = Path(__file__).resolve().parents[1] / "device"
NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Every file that a browser loads with its hash, and who vouches for it (nobody, in a development build)."""

    release: str
    files: dict[str, str]
    headers: dict[str, str]
    public_key: str | None = None
    signature: str | None = None

    def content(self) -> dict[str, Any]:
        """What is signed."""
        return {"format": FORMAT, "release": self.release, "files": self.files, "headers": self.headers}

    def to_json(self) -> dict[str, Any]:
        return self.content() | {"public_key": self.public_key, "signature": self.signature}

    def signed_by(self, key: Ed25519PrivateKey) -> Manifest:
        signature = key.sign(canonical(self.content())).hex()
        public = key.public_key().public_bytes_raw().hex()
        return Manifest(self.release, self.files, self.headers, public, signature)

    @property
    def signature_holds(self) -> bool:
        """False for a development build, which is not signed."""
        if self.public_key is None or self.signature is None:
            return False
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.public_key))
            key.verify(bytes.fromhex(self.signature), canonical(self.content()))
        except (InvalidSignature, ValueError):
            return False
        return True


def read_manifest(path: Path = DEVICE / NAME) -> Manifest:
    """The manifest that came with this installation."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise FileError(
                f"{path.name} must have the format {FORMAT}; got {data['format']!r}", fix="update crowdveil"
            )
        return Manifest(data["release"], data["files"], data["headers"], data["public_key"], data["signature"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} cannot be read as a release manifest", fix="install crowdveil again") from None


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """An Ed25519 key in PEM; it stays where it is."""
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise FileError(f"{path} cannot be read as a private key: {error}", fix="give an Ed25519 key in PEM") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise FileError(f"{path} must hold an Ed25519 key", fix="make one with: openssl genpkey -algorithm ed25519")
    return key


def file_hashes(folder: Path) -> dict[str, str]:
    """The hash of every file, by its path in the folder, but the manifest itself."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / NAME)
    return {path.relative_to(folder).as_posix(): integrity(path.read_bytes()) for path in files}


def integrity(content: bytes) -> str:
    """SHA-384 in the form that browsers check: import map, service worker and this manifest write the same."""
    return "sha384-" + base64.b64encode(hashlib.sha384(content).digest()).decode()
