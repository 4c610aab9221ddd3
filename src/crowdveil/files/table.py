"""The door: files become columns of text, or are refused with the row at which they go wrong.

CSV (with commas, semicolons or tabs), JSON Lines, Parquet and Arrow files, also packed (gzip, Zstandard, bzip2), from
standard input ("-"), and folders or globs of Parquet files. Rows are counted as an editor shows the lines of a CSV or
JSON Lines file, in which the header is row 1 of a CSV file. Parquet and Arrow files have no header; their rows are
counted from 1.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq
from numpy.typing import NDArray

from crowdveil.domain import Label
from crowdveil.errors import FileError
from crowdveil.exact import decimal_text
from crowdveil.files.columns import Columns, Needed, list_needed
from crowdveil.files.columns import find_columns as find_columns
from crowdveil.files.csv_faults import (
    count_quotes,
    csv_fault,
    find_separator,
    header_of,
    line_of,
    refuse_open_quote,
)
from crowdveil.files.problems import Problem, empty_id, no_rows
from crowdveil.files.sources import PARQUET, Source, Unpacked, find_files, read_first_bytes
from crowdveil.progress import ToldFile, tell

_MANY_ROWS = 200_000
# Rows of a Parquet file that are read at once.
_SLICE = 1 << 20
_ARROW, _JSON_LINES = (".arrow", ".feather", ".ipc"), (".jsonl", ".ndjson")
# What names nobody: an empty cell, and how programs write a missing number.
_NOBODY = frozenset({None, "nan", "NaN", "NAN"})
_EXCEL = (".xlsx", ".xls", ".ods")


@dataclass(frozen=True, slots=True)
class TextTable:
    """Columns of text under our own names, and where they came from."""

    columns: dict[str, Any]
    source: str
    first_row: int
    metadata: dict[bytes, bytes]
    path: Source | None = None
    """The CSV file, whose rows an editor counts otherwise where cells have line breaks or lines are blank."""
    label_type: type[Label] = str
    """What the answers are where the source has types: text, whole number, number or truth value."""
    categories: tuple[Label, ...] = ()
    """The options that the source itself lists, in its order."""
    parts: tuple[tuple[str, int], ...] = ()
    """The files of a folder and how many rows each has."""

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def label(self, text: str) -> Label:
        """The answer that a text of this table spells."""
        return parse_label(text, self.label_type.__name__)

    def coded(self, name: str) -> tuple[NDArray[np.int32], list[str | None]]:
        """Codes into the distinct texts of a column; null, empty and blank cells are None."""
        encoded = pc.dictionary_encode(self.columns[name], null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = pa.chunked_array(encoded.chunks).unify_dictionaries().combine_chunks()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
        return codes, [None if text is None or not text.strip() else text for text in encoded.dictionary.to_pylist()]

    def ids(self, name: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Codes and dictionary of an id column; an empty id, or the text nan, is refused."""
        codes, texts = self.coded(name)
        if not _NOBODY.isdisjoint(texts):
            place = next(place for place, text in enumerate(texts) if text in _NOBODY)
            raise self.refuse(empty_id(name), int(np.argmax(codes == place)))
        ids = np.empty(len(texts), dtype=object)
        ids[:] = texts
        return codes, ids

    def refuse(self, problem: Problem, index: int) -> FileError:
        """The error for a known kind of problem in the row at `index`."""
        return self.wrong(problem.sentence, index, problem.field, problem.fix)

    def wrong(self, problem: str, index: int, field: str, fix: str) -> FileError:
        """The error for the row at `index`."""
        source, row = self.locate(index)
        return FileError(problem, fix=fix, row=row, field=field, source=source)

    def locate(self, index: int) -> tuple[str, int]:
        """The file in which the row at `index` stands, and its number there."""
        for source, n_rows in self.parts:
            if index < n_rows:
                return source, index + self.first_row
            index -= n_rows
        return self.source, index + self.first_row if self.path is None else line_of(self.path, index)


def parse_label(text: str, kind: str) -> Label:
    """The label of that type which a text spells.

    >>> parse_label("1", "int"), parse_label("true", "bool"), parse_label("0.5", "float")
    (1, True, 0.5)
    """
    match kind:
        case "bool":
            return text == "true"
        case "int":
            return int(text)
        case "float":
            return float(text)
    return text


def both_ids(table: TextTable) -> tuple[tuple[NDArray[np.int32], NDArray[Any]], tuple[NDArray[np.int32], NDArray[Any]]]:
    """Codes and dictionaries of workers and questions; of a large table both at once, since Arrow needs no lock."""
    if len(table) < _MANY_ROWS:
        return table.ids("worker"), table.ids("question")
    with ThreadPoolExecutor(2) as pool:
        workers, questions = pool.map(table.ids, ("worker", "question"))
    return workers, questions


def read_table(
    path: str | Path, needed: Needed, *, optional: Sequence[str] = (), names: Mapping[str, str | None] | None = None
) -> TextTable:
    """Read the needed columns (a tuple names alternatives) and the optional ones, all as text.

    `names` maps our names to the file's own where these are others than ours.
    """
    columns = Columns(needed, optional, names)
    files = find_files(path)
    tables = [_read_file(source, columns) for source in files]
    table = tables[0] if len(tables) == 1 else _join(tables, str(path))
    if len(table) == 0:
        raise FileError(no_rows(path).sentence, fix=no_rows(path).fix)
    return table


def _join(tables: list[TextTable], source: str) -> TextTable:
    """The rows of several Parquet files, which must have the same columns and the same channels."""
    first = tables[0]
    for table in tables[1:]:
        if set(table.columns) != set(first.columns):
            raise FileError(f"{table.source} has other columns than {first.source}", fix="keep one kind of file there")
        if table.metadata.get(_CHANNELS) != first.metadata.get(_CHANNELS):
            raise FileError(f"{table.source} has other channels than {first.source}", fix="infer from each by itself")
        if table.label_type is not first.label_type:
            problem = f"answers are of another type in {table.source} than in {first.source}"
            raise FileError(problem, fix="give both files the same type")
    columns = {
        name: pa.chunked_array([chunk for table in tables for chunk in table.columns[name].chunks], pa.string())
        for name in first.columns
    }
    parts = tuple((table.source, len(table)) for table in tables)
    return TextTable(columns, source, 1, first.metadata, label_type=first.label_type, parts=parts)


_CHANNELS = b"crowdveil-channels"


def _read_file(source: Source, columns: Columns) -> TextTable:
    start = read_first_bytes(source)
    if not start:
        raise FileError(f"the file {source} is empty", fix=f"it needs a header row with {list_needed(columns.needed)}")
    name = source.name.lower()
    if name.endswith(_EXCEL):
        raise FileError("this is a workbook", fix="save the sheet as CSV", source=source.name)
    packed = isinstance(source, Unpacked)
    if name.endswith(PARQUET) or (packed and start.startswith(b"PAR1")):
        return _read_parquet(source, columns)
    if name.endswith(_ARROW) or (packed and start.startswith((b"ARROW1", b"\xff\xff\xff\xff"))):
        return _read_arrow(source, columns)
    if name.endswith(_JSON_LINES) or (packed and start.startswith(b"{")):
        return _read_json_lines(source, columns)
    return _read_csv(source, columns)


def _read_csv(source: Source, columns: Columns) -> TextTable:
    separator = find_separator(source)
    names = header_of(source, separator)
    wanted = columns.find(names, source.name)
    convert = pa_csv.ConvertOptions(
        column_types={name: pa.string() for name in names},
        include_columns=list(wanted.values()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
        null_values=[""],
    )
    try:
        with ToldFile(source) if isinstance(source, Path) else io.BufferedReader(source.raw()) as stream:
            # Arrow does not take a byte order mark off a header that it is not asked to read.
            stream.seek(3 if stream.peek(3).startswith(b"\xef\xbb\xbf") else 0)
            read = pa_csv.ReadOptions(block_size=1 << 24)
            quotes = count_quotes(source)
            parse = pa_csv.ParseOptions(newlines_in_values=quotes > 0, delimiter=separator)
            if quotes % 2:
                refuse_open_quote(source, separator)
            table = pa_csv.read_csv(stream, read_options=read, parse_options=parse, convert_options=convert)
    except pa.ArrowInvalid as error:
        raise csv_fault(source, len(names), str(error), separator) from None
    return TextTable({ours: table[name] for ours, name in wanted.items()}, source.name, 2, {}, source)


def _read_parquet(source: Source, columns: Columns) -> TextTable:
    readable = source if isinstance(source, Path) else pa.BufferReader(source.data)
    try:
        schema = pq.read_schema(readable)
        wanted = columns.find(schema.names, source.name)
        if isinstance(readable, pa.BufferReader):
            readable.seek(0)
        table = _parquet_rows(readable, list(wanted.values()))
    except (pa.ArrowInvalid, OSError) as error:
        said = str(error).split(". ")[0].rstrip(".")
        fix = "make it anew, or name it .csv if it is CSV"
        raise FileError(f"not a Parquet file: {said}", fix=fix, source=source.name) from None
    return typed_table(table, wanted, source.name, dict(schema.metadata or {}))


def _read_arrow(source: Source, columns: Columns) -> TextTable:
    data = pa.py_buffer(source.data) if isinstance(source, Unpacked) else pa.memory_map(str(source)).read_buffer()
    try:
        whole = bytes(data[:6]) == b"ARROW1"
        table = (pa.ipc.open_file(data) if whole else pa.ipc.open_stream(data)).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        said = str(error).split(". ")[0].rstrip(".")
        raise FileError(f"not an Arrow file: {said}", fix="make it anew", source=source.name) from None
    wanted = columns.find(table.column_names, source.name)
    return typed_table(table, wanted, source.name, dict(table.schema.metadata or {}))


def _read_json_lines(source: Source, columns: Columns) -> TextTable:
    data = source.data if isinstance(source, Unpacked) else source.read_bytes()
    try:
        table = pa_json.read_json(pa.BufferReader(data), read_options=pa_json.ReadOptions(block_size=1 << 26))
    except pa.ArrowInvalid as error:
        raise _json_fault(data, source.name, str(error)) from None
    return typed_table(table, columns.find(table.column_names, source.name), source.name, {})


def _json_fault(data: bytes, source: str, said: str) -> FileError:
    """The line that is no JSON object; or a column whose type changes, which Arrow names."""
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            if line.strip() and not isinstance(json.loads(line), dict):
                raise ValueError(line)
        except ValueError:
            problem = "a line must be one JSON object"
            return FileError(problem, fix='write {"worker": …, "question": …, "answer": …}', row=number, source=source)
    fix = "write all of them as text, or all as numbers"
    return FileError(f"a column must have one type: {said.split('. ')[0]}", fix=fix, source=source)


def typed_table(
    table: Any, wanted: Mapping[str, str], source: str, metadata: dict[bytes, bytes], categories: tuple[Label, ...] = ()
) -> TextTable:
    """An Arrow table whose columns have types, as texts; it remembers what the answers are."""
    answer = wanted.get("answer")
    return TextTable(
        {ours: as_text(table[name], name, source) for ours, name in wanted.items()},
        source,
        1,
        metadata,
        label_type=label_type(table[answer]) if answer is not None else str,
        categories=categories or (ordered_categories(table[answer]) if answer is not None else ()),
    )


def label_type(column: Any) -> type[Label]:
    """What the values of an Arrow column are in Python."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_boolean(kind):
        return bool
    if pa.types.is_integer(kind):
        return int
    return float if pa.types.is_floating(kind) else str


def ordered_categories(column: Any) -> tuple[Label, ...]:
    """The categories of a column that says they have an order; codes alone are no list of options."""
    if not pa.types.is_dictionary(column.type) or not column.type.ordered or not column.num_chunks:
        return ()
    return tuple(column.chunk(0).dictionary.to_pylist())


def _parquet_rows(readable: Any, names: list[str]) -> Any:
    """Some rows after the other, telling how far that is."""
    batches, done = [], 0
    with pq.ParquetFile(readable) as file:
        for batch in file.iter_batches(_SLICE, columns=names):
            batches.append(batch)
            done += len(batch)
            tell("rows read", done, file.metadata.num_rows)
        return pa.Table.from_batches(batches) if batches else file.schema_arrow.empty_table()


def as_text(column: Any, name: str, source: str) -> Any:
    """An Arrow column as text; a float that is a whole number is spelled without the point, NaN is null."""
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


def _float_text(number: float) -> str | None:
    if np.isnan(number):
        return None
    return decimal_text(Decimal(repr(number))) if np.isfinite(number) else str(number)
