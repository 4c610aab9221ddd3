"""Task lists and listed assignments from CSV, JSON lines or Parquet, refused with the row at which they go wrong.

Rows of CSV and JSON lines are counted as an editor shows the lines (the header of a CSV file is row 1), those of
Parquet from 1.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.errors import FileError

MAX_TASKS = 100_000
MAX_TASK_TEXT = 5000
TASK_COLUMNS = ("id", "text", "text_b", "alt", "gold")
_TASK_NAMES = {"task": "id", "truth": "gold"}
_PAIR_NAMES = {"id": "task", "question": "task"}
_ID = re.compile(r"[^\x00-\x1f\x7f]{1,64}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

Row: TypeAlias = dict[str, Any]


def read_tasks(path: str | Path) -> list[dict[str, str]]:
    """The tasks of a file: `id` and `text`, and where they have them `text_b`, `alt` and `gold`."""
    source = Path(path).name
    tasks: list[dict[str, str]] = []
    seen: dict[str, int] = {}
    for row, fields in _rows(Path(path), names=_TASK_NAMES, required=("id", "text"), allowed=TASK_COLUMNS):
        if len(tasks) == MAX_TASKS:
            raise FileError(f"a pool has at most {MAX_TASKS:,} tasks", fix="split the list", row=row, source=source)
        task = {
            name: text for name, value in fields.items() if (text := _text(value, name, row, source)) or name == "text"
        }
        key = task.get("id", "")
        if not _ID.fullmatch(key):
            raise FileError("an id must have 1 to 64 printable characters", row=row, field="id", source=source)
        if key in seen:
            raise FileError(f"id {key!r} stands in row {seen[key]} already", row=row, field="id", source=source)
        if not task["text"].strip():
            raise FileError("every task needs a text", fix="fill it in", row=row, field="text", source=source)
        seen[key] = row
        tasks.append(task)
    if not tasks:
        raise FileError("the list has no tasks", fix="give at least one row", source=source)
    return tasks


def read_assignments(path: str | Path, tasks: list[dict[str, str]]) -> list[dict[str, str]]:
    """A listed assignment: pairs of a worker code and a task of the list, each at most once."""
    source, known = Path(path).name, {task["id"] for task in tasks}
    pairs: list[dict[str, str]] = []
    seen: set[tuple[str, str]] = set()
    for row, fields in _rows(Path(path), names=_PAIR_NAMES, required=("worker", "task"), allowed=("worker", "task")):
        worker, task = (_text(fields[name], name, row, source) for name in ("worker", "task"))
        if not _ID.fullmatch(worker):
            raise FileError(
                "a worker code must have 1 to 64 printable characters", row=row, field="worker", source=source
            )
        if task not in known:
            raise FileError(f"the list has no task {task!r}", row=row, field="task", source=source)
        if (worker, task) in seen:
            raise FileError(f"worker {worker!r} has task {task!r} in an earlier row", row=row, source=source)
        seen.add((worker, task))
        pairs.append({"worker": worker, "task": task})
    return pairs


def _text(value: Any, name: str, row: int, source: str) -> str:
    """Numbers count as texts, since ids often are numbers."""
    if value is None:
        return ""
    if isinstance(value, bool | dict | list | float):
        raise FileError(f"must be text; got {value!r:.40}", row=row, field=name, source=source)
    text = str(value)
    if _CONTROL.search(text):
        raise FileError("text must have no control characters", row=row, field=name, source=source)
    if len(text) > MAX_TASK_TEXT:
        raise FileError(
            f"text has at most {MAX_TASK_TEXT:,} characters; got {len(text):,}", row=row, field=name, source=source
        )
    return text


def _rows(
    path: Path, *, names: dict[str, str], required: tuple[str, ...], allowed: tuple[str, ...]
) -> Iterator[tuple[int, Row]]:
    """(row, fields) with our own names of the columns; a missing or unknown column is refused before the first row."""
    readers = {".csv": _csv_rows, ".jsonl": _json_rows, ".parquet": _parquet_rows}
    kind = path.suffix.lower()
    if kind not in readers:
        raise FileError(f"the extension must be .csv, .jsonl or .parquet; got {path.name!r}", fix="rename the file")
    try:
        for row, fields in readers[kind](path):
            named = {names.get(name, name): value for name, value in fields.items()}
            for name in named:
                if name not in allowed:
                    raise FileError(
                        f"unknown column {name!r}; a row has {', '.join(allowed)}", row=row, source=path.name
                    )
            for name in required:
                if name not in named:
                    raise FileError(f"the column {name!r} is missing", row=row, source=path.name)
            yield row, named
    except UnicodeDecodeError:
        raise FileError("the file must be text in UTF-8", source=path.name) from None


def _csv_rows(path: Path) -> Iterator[tuple[int, Row]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, strict=True, restkey="")
        try:
            if reader.fieldnames is None:
                raise FileError("the file is empty", source=path.name)
            if len(set(reader.fieldnames)) < len(reader.fieldnames):
                raise FileError("two columns have the same name", row=1, source=path.name)
            before = reader.line_num
            for fields in reader:
                row, before = before + 1, reader.line_num
                if "" in fields or None in fields.values():
                    raise FileError(
                        f"a row must have {len(reader.fieldnames)} cells",
                        fix="quote texts with commas",
                        row=row,
                        source=path.name,
                    )
                yield row, dict(fields)
        except csv.Error as error:
            raise FileError(f"not CSV: {error}", row=reader.line_num, source=path.name) from None


def _json_rows(path: Path) -> Iterator[tuple[int, Row]]:
    with path.open(encoding="utf-8-sig") as file:
        for row, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                fields = json.loads(line)
            except ValueError:
                raise FileError("every line must be a JSON object", row=row, source=path.name) from None
            if not isinstance(fields, dict):
                raise FileError("every line must be a JSON object", row=row, source=path.name)
            yield row, fields


def _parquet_rows(path: Path) -> Iterator[tuple[int, Row]]:
    try:
        with pq.ParquetFile(path) as file:
            row = 0
            for batch in file.iter_batches(batch_size=10_000):
                for fields in batch.to_pylist():
                    row += 1
                    yield row, fields
    except pa.ArrowInvalid as error:
        raise FileError(f"not Parquet: {error}", source=path.name) from None
