"""Where what belongs to a file stands: known without loading anything that reads files."""

from __future__ import annotations

from pathlib import Path

STANDARD_STREAM = "-"
"""The name of standard input or output, as on other command lines."""


def sidecar(path: str | Path) -> Path:
    """Where the channels of a CSV file stand: reports.csv has reports.csv.channels.json."""
    path = Path(path)
    return path.with_name(path.name + ".channels.json")


def is_stream(path: str | Path) -> bool:
    """Standard input or output is meant."""
    return str(path) == STANDARD_STREAM
