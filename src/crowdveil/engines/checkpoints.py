"""What a driver writes down so that another can go on: small notes that are there whole or not at all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol


class Notes(Protocol):
    """Named bytes in a job's folder; `pause` is how many seconds should pass between two of them."""

    pause: ClassVar[float]

    def write(self, name: str, data: bytes) -> None:
        """Replace the note of that name at once."""

    def read(self, name: str) -> bytes | None:
        """The last note of that name that was written whole."""


@dataclass(frozen=True, slots=True)
class DiskNotes:
    """Files that are written beside and renamed."""

    folder: Path
    pause: ClassVar[float] = 1.0

    def write(self, name: str, data: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f".{name}.{os.getpid()}"
        temporary.write_bytes(data)
        temporary.replace(self.folder / name)

    def read(self, name: str) -> bytes | None:
        path = self.folder / name
        return path.read_bytes() if path.is_file() else None
