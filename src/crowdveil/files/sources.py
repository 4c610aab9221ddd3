"""Which files a name stands for: one, the Parquet files of a folder or glob, standard input, or a packed file.

What is packed, or can be read only once, is read into memory and unpacked, and then read like any other file.
"""

from __future__ import annotations

import glob
import io
import sys
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, TypeAlias

import pyarrow as pa

from crowdveil.errors import FileError
from crowdveil.files.paths import is_stream

PARQUET = (".parquet", ".pq")
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


Source: TypeAlias = Path | Unpacked


def read_first_bytes(source: Source) -> bytes:
    """The first bytes, which tell what kind of file it is."""
    with source.open("rb") as stream:
        start: bytes = stream.read(512)
    return start


def find_files(path: str | Path) -> list[Source]:
    """The file itself, standard input, what a pipe holds, or the Parquet files of a folder or glob."""
    if is_stream(path):
        return [unpack(Unpacked("standard input", sys.stdin.buffer.read()))]
    path = Path(path)
    try:
        if path.is_dir() or (not path.exists() and glob.has_magic(str(path))):
            return _find_parts(path)
        if not path.exists():
            raise _no_file(path)
        if not path.is_file():
            return [unpack(Unpacked(path.name, path.read_bytes()))]
        start = read_first_bytes(path)
    except PermissionError:
        # Of the file, or of a folder on the way to it.
        raise FileError(f"the file {path} may not be read by you", fix="change its permissions") from None
    if start.startswith(tuple(PACKED)):
        return [unpack(Unpacked(path.name, path.read_bytes()))]
    return [path]


def _no_file(path: Path) -> FileError:
    if ":/" in str(path):
        fix = "fetch it first; only the engine spark reads addresses"
        return FileError(f"{str(path)!r} is an address, not a file on this machine", fix=fix)
    return FileError(f"the file {path} does not exist", fix="check the name")


def _find_parts(path: Path) -> list[Source]:
    if path.is_dir():
        parts = sorted(part for part in path.iterdir() if part.suffix.lower() in PARQUET and part.is_file())
        what = f"{path} is a folder without Parquet files"
    else:
        matches = Path(path.anchor or ".").glob(str(path.relative_to(path.anchor)))
        parts = sorted(part for part in matches if part.is_file())
        what = f"no file matches {path}"
    if not parts:
        raise FileError(what, fix="name a file, or a folder of Parquet files")
    if any(part.suffix.lower() not in PARQUET for part in parts):
        raise FileError(f"{path} matches files that are not Parquet", fix="name one file, or only Parquet files")
    return list(parts)


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
