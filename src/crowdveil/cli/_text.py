"""Words and tables for people, no wider than their window; programs read `--json`."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

import typer

_NARROWEST, _WIDEST = 60, 120
_LEAST_TEXT = 24


def tell(text: str, *, indent: str = "  ") -> None:
    """One paragraph; lines after the first start under `indent`."""
    typer.echo("\n".join(_wrap(text, _width(), indent)))


def table(rows: Sequence[Sequence[str]]) -> None:
    """Columns side by side; what does not fit goes on under the last one."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    room = max(_width() - sum(widths) - 2 * len(widths), _LEAST_TEXT)
    for row in rows:
        head = "".join(cell.ljust(width) + "  " for cell, width in zip(row, widths, strict=False))
        first, *rest = _wrap(row[-1], room) or [""]
        typer.echo((head + first).rstrip())
        for line in rest:
            typer.echo(" " * len(head) + line)


def _width() -> int:
    return min(max(shutil.get_terminal_size((80, 24)).columns, _NARROWEST), _WIDEST)


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, tabsize=1
    )
