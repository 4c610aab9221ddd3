"""Packed files, pipes and standard input: read once into memory, unpacked, and then read like any other file."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from crowdveil.errors import FileError

PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"PK\x03\x04": "zip"}
"""How packed files begin."""
_SUFFIXES = (".gz", ".zst", ".zstd", ".bz2")


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The content of a file under its name; it opens like a path."""

    name: str
    data: bytes

    def __str__(self) -> str:
        return self.name

    def raw(self) -> io.BytesIO:
        return io.BytesIO(self.data)

    def open(self, mode: str = "r", **how: Any) -> Any:
        return self.raw() if "b" in mode else io.TextIOWrapper(self.raw(), **how)


def unpack(source: Unpacked) -> Unpacked:
    """The content of a packed file under the name without its last suffix; anything else as it is."""
    kind = next((kind for start, kind in PACKED.items() if source.data.startswith(start)), None)
    if kind is None:
        return source
    if kind == "zip":
        fix = "save the sheet, or the file in it, as CSV or Parquet"
        raise FileError("this is a workbook or a ZIP archive", fix=fix, source=source.name)
    try:
        data = pa.input_stream(pa.BufferReader(source.data), compression=kind).read()
    except (OSError, pa.ArrowInvalid):
        problem = f"the file is packed ({kind}) and damaged"
        raise FileError(problem, fix="make it anew", source=source.name) from None
    path = PurePath(source.name)
    return Unpacked(path.stem if path.suffix.lower() in _SUFFIXES else path.name, data)
