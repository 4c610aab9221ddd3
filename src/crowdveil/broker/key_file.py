"""A key in a file of its own: there whole or not at all, and only for the broker's user."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def put_new(path: Path, content: bytes) -> None:
    """The file appears whole or not at all, and the first of two at once wins: nobody ever reads half a key."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
