"""The door: CSV and Parquet files become columns of text, or are refused with the row at which they go wrong.

Rows are counted as an editor shows the lines of a CSV file: the header is row 1. A Parquet file has no header row; its
rows are counted from 1.
"""

from __future__ import annotations

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
from crowdveil.files.csv_faults import count_quotes, csv_fault, header_of, line_of, refuse_open_quote
from crowdveil.files.problems import Problem, empty_id, no_rows
from crowdveil.progress import ToldFile, tell

_MANY_ROWS = 200_000
# Rows of a Parquet file that are read at once.
_SLICE = 1 << 20
# Our own errors show so much of a header.
_MOST_NAMES, _MOST_TEXT = 20, 200
_SAME = {"task": "question", "label": "answer"}


@dataclass(frozen=True, slots=True)
class TextTable:
    """Columns of text under our own names, and where they came from."""

    columns: dict[str, Any]
    source: str
    first_row: int
    metadata: dict[bytes, bytes]
    path: Path | None = None
    """The CSV file, whose rows an editor counts otherwise where cells have line breaks or lines are blank."""

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
        return codes, [None if text == "" else text for text in encoded.dictionary.to_pylist()]

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
        row = index + self.first_row if self.path is None else line_of(self.path, index)
        return FileError(problem, fix=fix, row=row, field=field, source=self.source)


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
    _check_readable(path)
    if path.stat().st_size == 0:
        raise FileError(f"the file {path} is empty", fix=f"it needs a header row with {_spelled(needed)}")
    reader = _read_parquet if path.suffix.lower() in (".parquet", ".pq") else _read_csv
    table = reader(path, needed, optional)
    if len(table) == 0:
        raise FileError(no_rows(path).sentence, fix=no_rows(path).fix)
    return table


def _check_readable(path: Path) -> None:
    try:
        _check_kind(path)
        path.open("rb").close()
    except PermissionError:
        # Of the file, or of a folder on the way to it.
        raise FileError(f"the file {path} may not be read by you", fix="change its permissions") from None


def _check_kind(path: Path) -> None:
    if path.is_dir():
        raise FileError(f"{path} is a folder", fix="name a file in it")
    if path.exists() and not path.is_file():
        raise FileError(f"{path} can be read only once, and a table is read twice", fix="save it as a file first")
    if not path.exists():
        raise FileError(f"the file {path} does not exist", fix="check the name")


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
                f"the column {missing} is missing; got {_shown(names)}", fix=_column_fix(names), source=source
            )
    wanted = {name for entry in needed for name in ((entry,) if isinstance(entry, str) else entry)} | set(optional)
    return {ours: name for ours, name in found.items() if ours in wanted}


def _shown(names: Sequence[str]) -> str:
    """The header on one line, and never a whole file of it."""
    line = " ".join(", ".join(names[:_MOST_NAMES]).split()) or "an empty row"
    return line if len(line) <= _MOST_TEXT and len(names) <= _MOST_NAMES else f"{line[:_MOST_TEXT]} …"


def _column_fix(names: Sequence[str]) -> str:
    if any("\n" in name for name in names):
        return "close the quote that opens in the header"
    other = next((mark for mark in ";\t| " if len(names) == 1 and mark in names[0].strip()), None)
    return f"save the file with commas between cells instead of {other!r}" if other else "rename or add it"


def _also(name: str) -> str:
    return "/".join([name, *(other for other, ours in _SAME.items() if ours == name)])


def _spelled(needed: Sequence[str | tuple[str, ...]]) -> str:
    return ", ".join(name if isinstance(name, str) else " or ".join(name) for name in needed)


def _read_csv(path: Path, needed: Sequence[str | tuple[str, ...]], optional: Sequence[str]) -> TextTable:
    names = header_of(path)
    found = find_columns(names, needed, optional, path.name)
    convert = pa_csv.ConvertOptions(
        column_types={name: pa.string() for name in names},
        include_columns=list(found.values()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
        null_values=[""],
    )
    try:
        with ToldFile(path) as stream:
            # Arrow does not take a byte order mark off a header that it is not asked to read.
            stream.seek(3 if stream.peek(3).startswith(b"\xef\xbb\xbf") else 0)
            read = pa_csv.ReadOptions(block_size=1 << 24)
            quotes = count_quotes(path)
            parse = pa_csv.ParseOptions(newlines_in_values=quotes > 0)
            if quotes % 2:
                refuse_open_quote(path)
            table = pa_csv.read_csv(stream, read_options=read, parse_options=parse, convert_options=convert)
    except pa.ArrowInvalid as error:
        raise csv_fault(path, len(names), str(error)) from None
    return TextTable({ours: table[name] for ours, name in found.items()}, path.name, 2, {}, path)


def _read_parquet(path: Path, needed: Sequence[str | tuple[str, ...]], optional: Sequence[str]) -> TextTable:
    try:
        schema = pq.read_schema(path)
        found = find_columns(schema.names, needed, optional, path.name)
        table = _parquet_rows(path, list(found.values()))
    except (pa.ArrowInvalid, OSError) as error:
        said = str(error).split(". ")[0].rstrip(".")
        fix = "make it anew, or name it .csv if it is CSV"
        raise FileError(f"not a Parquet file: {said}", fix=fix, source=path.name) from None
    columns = {ours: as_text(table[name], name, path.name) for ours, name in found.items()}
    return TextTable(columns, path.name, 1, dict(schema.metadata or {}))


def _parquet_rows(path: Path, names: list[str]) -> Any:
    """Some rows after the other, telling how far that is."""
    batches, done = [], 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_SLICE, columns=names):
            batches.append(batch)
            done += len(batch)
            tell("rows read", done, file.metadata.num_rows)
        return pa.Table.from_batches(batches) if batches else file.schema_arrow.empty_table()


def as_text(column: Any, name: str, source: str) -> Any:
    """An Arrow column as text; a float that is a whole number is spelled without the point."""
    column = decoded(column)
    if pa.types.is_floating(column.type):
        return pa.chunked_array([_float_texts(pc.dictionary_encode(column).combine_chunks())])
    try:
        return pc.cast(column, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        problem = f"a cell must be a text or a number; the column has the type {column.type}"
        raise FileError(problem, fix="save the column as text", field=name, source=source) from None


def decoded(column: Any) -> Any:
    """A column that names its values by codes, with the values written out."""
    whole = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if not pa.types.is_dictionary(whole.type):
        return whole
    # Arrow can look up no texts of the kind that polars keeps.
    kind = pa.string() if pa.types.is_string_view(whole.type.value_type) else whole.type.value_type
    return pa.chunked_array([chunk.dictionary.cast(kind).take(chunk.indices) for chunk in whole.chunks], kind)


def _float_texts(column: Any) -> Any:
    encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    texts = [_float_text(number) for number in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(texts, pa.string())).cast(pa.string())


def _float_text(number: float) -> str:
    return decimal_text(Decimal(repr(number))) if np.isfinite(number) else str(number)
