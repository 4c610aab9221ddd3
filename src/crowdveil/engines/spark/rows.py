"""Packed blocks, states and statistics as rows of a DataFrame: the only things that travel between tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engines.packing import NO_QUESTIONS, DuplicateError, Packed, added, chunks_of, pack
from crowdveil.inference.model import Statistics

Batches = Iterator[pa.RecordBatch]

PACKED = "questions array<string>, payload binary, by_channel array<long>, duplicate string"
STATE = "questions array<string>, payload binary, kept binary"
CHUNKS = "label string, chunk int, data binary"
STEP = f"{STATE}, {CHUNKS}"
"""States and statistics of one pass: different columns of one table, so that both are written at once."""

_TYPES = {
    "questions": pa.list_(pa.string()),
    "payload": pa.binary(),
    "kept": pa.binary(),
    "by_channel": pa.list_(pa.int64()),
    "duplicate": pa.string(),
    "label": pa.string(),
    "chunk": pa.int32(),
    "data": pa.binary(),
}


def row(names: str, **values: object) -> pa.RecordBatch:
    """One row with the columns of a schema; those without a value are null."""
    columns = [column.split()[0] for column in names.split(", ")]
    return pa.RecordBatch.from_arrays(
        [_cell(values.get(name), _TYPES[name]) for name in columns],
        schema=pa.schema([(name, _TYPES[name]) for name in columns]),
    )


def _cell(value: object, kind: pa.DataType) -> pa.Array:
    """A column of one row; ids that are in an array already, and bytes in a buffer, are not copied one by one."""
    if isinstance(value, pa.Array):
        return pa.ListArray.from_arrays(pa.array([0, len(value)], pa.int32()), value)
    return pa.array([value.to_pybytes() if isinstance(value, pa.Buffer) else value], kind)


def packed_rows(batches: Batches, n_channels: int) -> Batches:
    """The rows of a partition as blocks of whole questions; a repeated answer as a row that says so."""
    tables = [batch for batch in batches if batch.num_rows]
    if not tables:
        return
    try:
        for packed in pack(pa.Table.from_batches(tables)):
            counts = np.bincount(packed.block.channel, minlength=n_channels).tolist()
            yield row(PACKED, questions=packed.questions, payload=packed.to_bytes(), by_channel=counts)
    except DuplicateError as twice:
        yield row(PACKED, duplicate=str(twice))


def blocks_in(batches: Batches) -> Iterator[Packed]:
    """The packed blocks of a partition, one after the other; without what was not read of them."""
    for batch in batches:
        for index in range(batch.num_rows):
            cells = {name: batch.column(name)[index] for name in batch.schema.names}
            # Views of Arrow's memory: the block is copied once, by unpickling.
            questions = cells["questions"].values if "questions" in cells else NO_QUESTIONS
            kept = cells["kept"].as_buffer() if "kept" in cells else None
            yield Packed.from_bytes(cells["payload"].as_buffer(), questions, kept)


def state_row(packed: Packed, names: str = STATE) -> pa.RecordBatch:
    return row(names, questions=packed.questions, payload=packed.to_bytes(), kept=packed.kept)


def chunk_rows(statistics: Statistics, names: str = CHUNKS) -> Batches:
    for label, chunk, data in chunks_of(statistics):
        yield row(names, label=label, chunk=chunk, data=data)


def add_chunks(rows: Any) -> Any:
    """One chunk of one array from all tasks: a pandas frame in, one row out."""
    first = rows.iloc[[0]].copy()
    first["data"] = [added(rows["label"].iloc[0], [bytes(data) for data in rows["data"]])]
    return first
