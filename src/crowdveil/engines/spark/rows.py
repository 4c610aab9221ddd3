"""Packed blocks, states and statistics as rows of a DataFrame: the only things that travel between tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engines.packing import DuplicateError, Packed, added, chunks_of, pack
from crowdveil.inference.model import Statistics

Batches = Iterator[pa.RecordBatch]

PACKED = "questions array<string>, payload binary, by_channel array<long>, duplicate string"
STATE = "questions array<string>, payload binary"
CHUNKS = "label string, chunk int, data binary"
STEP = f"{STATE}, {CHUNKS}"

_TYPES = {
    "questions": pa.list_(pa.string()),
    "payload": pa.binary(),
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
        [pa.array([values.get(name)], _TYPES[name]) for name in columns],
        schema=pa.schema([(name, _TYPES[name]) for name in columns]),
    )


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
    """The packed blocks of a partition, one after the other; without their questions where those were not read."""
    for batch in batches:
        questions = batch.column("questions") if "questions" in batch.schema.names else None
        payload = batch.column("payload")
        for index in range(batch.num_rows):
            names = [] if questions is None else questions[index].as_py()
            # A view of Arrow's memory: the block is copied once, by unpickling.
            yield Packed.from_bytes(names, payload[index].as_buffer())


def state_row(packed: Packed) -> pa.RecordBatch:
    return row(STATE, questions=packed.questions, payload=packed.to_bytes())


def chunk_rows(statistics: Statistics) -> Batches:
    for label, chunk, data in chunks_of(statistics):
        yield row(CHUNKS, label=label, chunk=chunk, data=data)


def step_rows(statistics: Statistics, packed: Packed) -> Batches:
    """A block's new state and its statistics: different columns of one table, so that both are written at once."""
    yield row(STEP, questions=packed.questions, payload=packed.to_bytes())
    for label, chunk, data in chunks_of(statistics):
        yield row(STEP, label=label, chunk=chunk, data=data)


def add_chunks(rows: Any) -> Any:
    """One chunk of one array from all blocks: a pandas frame in, one row out."""
    first = rows.iloc[[0]].copy()
    first["data"] = [added([bytes(data) for data in rows["data"]])]
    return first
