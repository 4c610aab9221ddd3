"""Which column is which: our names, those of the field (task, label), or those that the caller gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from crowdveil.errors import FileError

# Our own errors show so much of a header.
_MOST_NAMES, _MOST_TEXT = 20, 200
_SAME = {"task": "question", "label": "answer"}

Needed: TypeAlias = Sequence[str | tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns are wanted under which of our names; `names` are the file's, where the caller says so."""

    needed: Needed
    optional: Sequence[str] = ()
    names: Mapping[str, str | None] | None = None

    def find(self, names: Sequence[str], source: str) -> dict[str, str]:
        return find_columns(names, self.needed, self.optional, source, self.names)


def find_columns(
    names: Sequence[str],
    needed: Needed,
    optional: Sequence[str],
    source: str,
    mapping: Mapping[str, str | None] | None = None,
) -> dict[str, str]:
    """Our name → the file's name for every column that is wanted; `mapping` says it where the names are others."""
    given = {ours: name for ours, name in (mapping or {}).items() if name is not None}
    for name in given.values():
        if name not in names:
            raise FileError(f"there is no column {name!r}; got {_shown(names)}", fix="check the name", source=source)
    columns: dict[str, str] = {}
    for name in names:
        ours = _SAME.get(name.strip().lower(), name.strip().lower())
        if ours in given or name in given.values():
            continue
        if ours in columns:
            raise FileError(
                f"the columns {columns[ours]!r} and {name!r} mean the same", fix="remove one", source=source
            )
        columns[ours] = name
    columns |= given
    for alternatives in needed:
        alternatives = (alternatives,) if isinstance(alternatives, str) else alternatives
        if not any(name in columns for name in alternatives):
            missing = " or ".join(f"'{_also(name)}'" for name in alternatives)
            raise FileError(
                f"the column {missing} is missing; got {_shown(names)}", fix=_column_fix(names), source=source
            )
    wanted = {name for entry in needed for name in ((entry,) if isinstance(entry, str) else entry)} | set(optional)
    return {ours: name for ours, name in columns.items() if ours in wanted}


def _shown(names: Sequence[str]) -> str:
    """The header on one line, and never a whole file of it."""
    line = " ".join(", ".join(names[:_MOST_NAMES]).split()) or "an empty row"
    return line if len(line) <= _MOST_TEXT and len(names) <= _MOST_NAMES else f"{line[:_MOST_TEXT]} …"


def _column_fix(names: Sequence[str]) -> str:
    if any("\n" in name for name in names):
        return "close the quote that opens in the header"
    other = next((mark for mark in "| " if len(names) == 1 and mark in names[0].strip()), None)
    return f"save the file with commas between cells instead of {other!r}" if other else "rename or add it"


def _also(name: str) -> str:
    return "/".join([name, *(other for other, ours in _SAME.items() if ours == name)])


def list_needed(needed: Needed) -> str:
    """The names of the needed columns on one line."""
    return ", ".join(name if isinstance(name, str) else " or ".join(name) for name in needed)
