"""The door: CSV and Parquet files become columns of text, or are refused with the row at which they go wrong.

Rows are counted as a spreadsheet or an editor shows a CSV file: the header is row 1. A Parquet file has no header
row; its rows are counted from 1.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from crowdveil.errors import FileError
from crowdveil.exact import decimal_text
from crowdveil.files.problems import Problem, empty_id, no_rows

_MANY_ROWS = 200_000
# How gzip, zip, Zstandard and bzip2 files begin.
_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh")
_SAME = {"task": "question", "label": "answer"}


@dataclass(frozen=True, slots=True)
class TextTable:
    """Columns of text under our own names, and where they came from."""

    columns: dict[str, Any]
    source: str
    first_row: int
    metadata: dict[bytes, bytes]

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def coded(self, name: str) -> tuple[NDArray[np.int32], list[str | None]]:
        """Codes into the distinct texts of a column; nulls and empty cells share the entry None."""
        encoded = pc.dictionary_encode(self.columns[name], null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = pa.chunked_array(encoded.chunks).unify_dictionaries().combine_chunks()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
        return codes, [text or None for text in encoded.dictionary.to_pylist()]

    def ids(self, name: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Codes and dictionary of an id column; an empty id is refused."""
        codes, texts = self.coded(name)
        if None in texts:
            row = int(np.argmax(codes == texts.index(None)))
            raise self.refuse(empty_id(name), row)
        ids = np.empty(len(texts), dtype=object)
        ids[:] = texts
        return codes, ids

    def refuse(self, problem: Problem, index: int) -> FileError:
        """The error for a known kind of problem in the row at `index`."""
        return self.wrong(problem.sentence, index, problem.field, problem.fix)

    def wrong(self, problem: str, index: int, field: str, fix: str) -> FileError:
        """The error for the row at `index`."""
        return FileError(problem, fix=fix, row=index + self.first_row, field=field, source=self.source)


def both_ids(table: TextTable) -> tuple[tuple[NDArray[np.int32], NDArray[Any]], tuple[NDArray[np.int32], NDArray[Any]]]:
    """Codes and dictionaries of workers and questions; of a large table both at once, since Arrow needs no lock."""
    if len(table) < _MANY_ROWS:
        return table.ids("worker"), table.ids("question")
    with ThreadPoolExecutor(2) as pool:
        workers, questions = pool.map(table.ids, ("worker", "question"))
    return workers, questions


def read_table(path: str | Path, needed: Sequence[str | tuple[str, ...]], *, optional: Sequence[str] = ()) -> TextTable:
    """Read the needed columns (a tuple names alternatives) and the optional ones, all as text."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"the file {path} does not exist", fix="check the name")
    if path.stat().st_size == 0:
        raise FileError(f"the file {path} is empty", fix=f"it needs a header row with {_spelled(needed)}")
    reader = _read_parquet if path.suffix.lower() in (".parquet", ".pq") else _read_csv
    table = reader(path, needed, optional)
    if len(table) == 0:
        raise FileError(no_rows(path).sentence, fix=no_rows(path).fix)
    return table


def find_columns(
    names: Sequence[str], needed: Sequence[str | tuple[str, ...]], optional: Sequence[str], source: str
) -> dict[str, str]:
    """Our name → the file's name for every column that is wanted."""
    found: dict[str, str] = {}
    for name in names:
        ours = _SAME.get(name.strip().lower(), name.strip().lower())
        if ours in found:
            raise FileError(f"the columns {found[ours]!r} and {name!r} mean the same", fix="remove one", source=source)
        found[ours] = name
    for alternatives in needed:
        alternatives = (alternatives,) if isinstance(alternatives, str) else alternatives
        if not any(name in found for name in alternatives):
            missing = " or ".join(f"'{_also(name)}'" for name in alternatives)
            raise FileError(
                f"the column {missing} is missing; got {', '.join(names)}", fix=_column_fix(names), source=source
            )
    wanted = {name for entry in needed for name in ((entry,) if isinstance(entry, str) else entry)} | set(optional)
    return {ours: name for ours, name in found.items() if ours in wanted}


def _column_fix(names: Sequence[str]) -> str:
    other = next((mark for mark in ";\t|" if len(names) == 1 and mark in names[0]), None)
    return f"save the file with commas between cells instead of {other!r}" if other else "rename or add it"


def _also(name: str) -> str:
    return "/".join([name, *(other for other, ours in _SAME.items() if ours == name)])


def _spelled(needed: Sequence[str | tuple[str, ...]]) -> str:
    return ", ".join(name if isinstance(name, str) else " or ".join(name) for name in needed)


def _read_csv(path: Path, needed: Sequence[str | tuple[str, ...]], optional: Sequence[str]) -> TextTable:
    names = _header(path)
    found = find_columns(names, needed, optional, path.name)
    convert = pa_csv.ConvertOptions(
        column_types={name: pa.string() for name in names},
        include_columns=list(found.values()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
        null_values=[""],
    )
    try:
        with path.open("rb") as stream:
            # Arrow does not take a byte order mark off a header that it is not asked to read.
            stream.seek(3 if stream.read(3) == b"\xef\xbb\xbf" else 0)
            read = pa_csv.ReadOptions(block_size=1 << 24)
            parse = pa_csv.ParseOptions(newlines_in_values=_has_quotes(path))
            table = pa_csv.read_csv(stream, read_options=read, parse_options=parse, convert_options=convert)
    except pa.ArrowInvalid as error:
        raise _csv_fault(path, len(names), str(error)) from None
    return TextTable({ours: table[name] for ours, name in found.items()}, path.name, 2, {})


def _has_quotes(path: Path) -> bool:
    """Whether a cell may hold a line break: only then must Arrow read the file in one piece."""
    with path.open("rb") as stream:
        return any(b'"' in chunk for chunk in iter(lambda: stream.read(1 << 24), b""))


def _header(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            names = next(csv.reader(stream), [])
    except UnicodeDecodeError:
        raise _csv_fault(path, 0, "") from None
    if len(set(names)) != len(names):
        raise FileError("two columns have the same name", fix="rename one", row=1, source=path.name)
    return names


def _csv_fault(path: Path, n_columns: int, said: str) -> FileError:
    """Find the row that Arrow stumbled over; slow, but only bad files pay for it."""
    with path.open("rb") as stream:
        if stream.read(4).startswith(_COMPRESSED):
            return FileError("the file is compressed", fix="unpack it first, or save it as Parquet", source=path.name)
        stream.seek(0)
        for number, line in enumerate(stream, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                problem = f"the text is not UTF-8: byte {line[error.start]:#04x} cannot be read"
                return FileError(problem, fix="save the file as UTF-8", row=number, source=path.name)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        for number, cells in enumerate(csv.reader(stream), start=1):
            if cells and len(cells) != n_columns:
                problem = f"the row has {len(cells)} cells but the header has {n_columns}"
                return FileError(problem, fix='quote cells that hold a comma: "a,b"', row=number, source=path.name)
    return FileError(f"not a CSV file: {said}", fix="save the file as CSV or Parquet", source=path.name)


def _read_parquet(path: Path, needed: Sequence[str | tuple[str, ...]], optional: Sequence[str]) -> TextTable:
    try:
        schema = pq.read_schema(path)
        found = find_columns(schema.names, needed, optional, path.name)
        table = pq.read_table(path, columns=list(found.values()))
    except (pa.ArrowInvalid, OSError) as error:
        raise FileError(f"not a Parquet file: {error}", fix="check the file", source=path.name) from None
    columns = {ours: as_text(table[name]) for ours, name in found.items()}
    return TextTable(columns, path.name, 1, dict(schema.metadata or {}))


def as_text(column: Any) -> Any:
    """Any Arrow column as text; a float that is a whole number is spelled without the point."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        seen = pc.dictionary_encode(column).combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return pa.chunked_array([_float_texts(seen)])
    return pc.cast(column, pa.string())


def _float_texts(column: Any) -> Any:
    encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    texts = [_float_text(number) for number in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(texts, pa.string())).cast(pa.string())


def _float_text(number: float) -> str:
    return decimal_text(Decimal(repr(number))) if np.isfinite(number) else str(number)
