"""Writing tables: CSV or Parquet by the extension."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from crowdveil.domain import Choices, Domain
from crowdveil.files.paths import is_parquet as is_parquet
from crowdveil.progress import tell

# As many rows as Arrow puts into a row group of its own accord.
_SLICE = 1 << 20


def write_table(path: str | Path, columns: Mapping[str, Any], metadata: Mapping[bytes, bytes] | None = None) -> None:
    """Write the columns; metadata travels only in Parquet."""
    table = pa.table(dict(columns))
    if is_parquet(path):
        table = table.replace_schema_metadata(dict(metadata or {}))
        with pq.ParquetWriter(path, table.schema) as writer:
            _write_slices(table, writer)
        return
    _write_csv(path, pa.table({name: plain_column(table[name]) for name in table.column_names}))


def _write_csv(path: str | Path, table: Any) -> None:
    """Without quotes, as people expect to see their files, unless some cell cannot do without."""
    try:
        _write_quoted(path, table, "none")
    except pa.ArrowInvalid:
        _write_quoted(path, table, "needed")


def _write_quoted(path: str | Path, table: Any, quoting: str) -> None:
    with Path(path).open("wb") as stream:
        stream.write((_header(table.column_names) + "\n").encode())
        options = pa_csv.WriteOptions(include_header=False, quoting_style=quoting)
        with pa_csv.CSVWriter(stream, table.schema, write_options=options) as writer:
            _write_slices(table, writer)


def _write_slices(table: Any, writer: Any) -> None:
    """Some rows after the other, telling how far that is; an empty table is a file, too."""
    for start in range(0, len(table) or 1, _SLICE):
        writer.write_table(table.slice(start, _SLICE))
        tell("rows written", min(start + _SLICE, len(table)), len(table))


def _header(names: list[str]) -> str:
    line = io.StringIO()
    # Only what its lines end with, and the comma, does Python's writer put into quotes.
    csv.writer(line, lineterminator="\r\n").writerow(names)
    return line.getvalue().removesuffix("\r\n")


def coded_column(codes: NDArray[Any], texts: list[str | None]) -> Any:
    """A column of texts given by codes, without writing each text out."""
    missing = [place for place, text in enumerate(texts) if text is None]
    indices = pa.array(codes.astype(np.int32, copy=False), mask=np.isin(codes, missing) if missing else None)
    return pa.DictionaryArray.from_arrays(indices, pa.array([text or "" for text in texts], pa.string()))


def id_texts(ids: NDArray[Any]) -> list[str | None]:
    """Ids as text."""
    return [str(name) for name in ids]


def label_column(path: str | Path, codes: NDArray[Any], domain: Domain) -> Any:
    """Answers or estimates given by codes, null below 0: in Parquet of the labels' type, in CSV as they are spelled."""
    kinds = {type(label) for label in domain.labels} if isinstance(domain, Choices) else {str}
    if not is_parquet(path) or kinds == {str} or len(kinds) > 1:
        return coded_column(np.where(codes < 0, domain.size, codes), [*domain.symbols, None])
    assert isinstance(domain, Choices)
    return pa.array(domain.labels).take(pa.array(np.maximum(codes, 0), mask=codes < 0))


def plain_column(column: Any) -> Any:
    """The column with its values written out, where it names them by codes."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
