"""Where what belongs to a file stands: known without loading anything that reads files."""

from __future__ import annotations

from pathlib import Path

from crowdveil.errors import FileError

STANDARD_STREAM = "-"
"""The name of standard input or output, as on other command lines."""
_PARQUET = (".parquet", ".pq")


def sidecar(path: str | Path) -> Path:
    """Where the channels of a CSV file stand: reports.csv has reports.csv.channels.json."""
    path = Path(path)
    return path.with_name(path.name + ".channels.json")


def is_stream(path: str | Path) -> bool:
    """Standard input or output is meant."""
    return str(path) == STANDARD_STREAM


def is_parquet(path: str | Path) -> bool:
    """The extension decides; anything else than CSV or Parquet is refused before work begins. A stream is CSV."""
    if is_stream(path):
        return False
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", *_PARQUET):
        raise FileError(f"the extension must be .csv or .parquet; got {str(path)!r}", fix="rename the file")
    return suffix in _PARQUET


def start_beside(path: str | Path) -> Path:
    """Where the warm start of an estimates file stands: estimates.csv has estimates.csv.start.npz."""
    path = Path(path)
    return path.with_name(path.name + ".start.npz")
