"""Packed blocks, states and statistics as rows of a DataFrame: the only things that travel between tasks."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crowdveil.engines.serialization import NO_QUESTIONS, DuplicateError, Packed, add_chunks, pack, split_statistics
from crowdveil.inference.protocols import Statistics

Batches = Iterator[pa.RecordBatch]

_COUNTED = "n_questions int, by_channel array<long>, by_option array<long>"
PACKED = f"questions array<string>, payload binary, {_COUNTED}, duplicate string"
STATE = "questions array<string>, payload binary, kept binary"
CHUNKS = "label string, chunk int, data binary"
STEP = f"{STATE}, {CHUNKS}"
"""States and statistics of one pass: different columns of one table, so that both are written at once."""

_TYPES = {
    "questions": pa.list_(pa.string()),
    "payload": pa.binary(),
    "kept": pa.binary(),
    "n_questions": pa.int32(),
    "by_channel": pa.list_(pa.int64()),
    "by_option": pa.list_(pa.int64()),
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


def packed_rows(batches: Batches, n_channels: int, n_options: int) -> Batches:
    """The rows of a partition as blocks of whole questions; a repeated answer as a row that says so.

    Reports are counted by their option where they are answers, `n_options` being 0 where they are not.
    """
    tables = [batch for batch in batches if batch.num_rows]
    if not tables:
        return
    try:
        for packed in pack(pa.Table.from_batches(tables)):
            counts = np.bincount(packed.block.channel, minlength=n_channels).tolist()
            named = np.bincount(packed.block.report, minlength=n_options).tolist() if n_options else []
            summary = {"n_questions": len(packed.questions), "by_channel": counts, "by_option": named}
            yield row(PACKED, questions=packed.questions, payload=packed.to_bytes(), **summary)
    except DuplicateError as twice:
        yield row(PACKED, duplicate=str(twice))


def files_in(folder: str) -> list[str]:
    """The files of a table on a disk that this process can reach; none at an address such as s3://…"""
    return sorted(map(str, Path(folder).absolute().glob("part-*.parquet"))) if "://" not in folder else []


def blocks_at(files: list[str], columns: tuple[str, ...]) -> Callable[[Batches], Iterator[Packed]]:
    """A reader of the blocks in the files whose numbers a partition holds.

    A task that reads its file by itself is spared the way through Java, which takes longer than most passes.
    """

    def read(batches: Batches) -> Iterator[Packed]:
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            with pq.ParquetFile(files[number], memory_map=True) as file:
                there = [name for name in columns if name in file.schema_arrow.names]
                yield from blocks_in(file.read(there).to_batches())

    return read


def blocks_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Packed]:
    """The packed blocks of a partition, one after the other; without what was not read of them."""
    for batch in batches:
        for index in np.flatnonzero(batch.column("payload").is_valid().to_numpy(zero_copy_only=False)).tolist():
            cells = {name: batch.column(name)[index] for name in batch.schema.names}
            # Views of Arrow's memory, and where it may be written the block's arrays are too.
            questions = cells["questions"].values if "questions" in cells else NO_QUESTIONS
            raw_block = cells["kept"].as_buffer() if "kept" in cells else None
            yield Packed.from_bytes(cells["payload"].as_buffer(), questions, raw_block)


def chunks_at(files: list[str]) -> list[tuple[str, int, bytes]]:
    """The statistics that stand beside the states in these files."""
    chunks = pq.read_table(files, columns=["label", "chunk", "data"])
    return [tuple(chunk.values()) for chunk in chunks.filter(pc.is_valid(chunks["label"])).to_pylist()]


@cache
def keep_modules() -> None:
    """Spark collects garbage after every task, and would look each time at all that was loaded; here it is set aside.

    Done once, after a pass has loaded what it needs: nothing of that ever becomes garbage.
    """
    gc.collect()
    gc.freeze()


def state_row(packed: Packed, names: str = STATE) -> pa.RecordBatch:
    return row(names, questions=packed.questions, payload=packed.to_bytes(), kept=packed.kept)


def chunk_rows(statistics: Statistics, names: str = CHUNKS) -> Batches:
    for label, chunk, data in split_statistics(statistics):
        yield row(names, label=label, chunk=chunk, data=data)


def add_chunk_group(rows: Any) -> Any:
    """One chunk of one array from all tasks: a pandas frame in, one row out."""
    first = rows.iloc[[0]].copy()
    first["data"] = [add_chunks(rows["label"].iloc[0], [bytes(data) for data in rows["data"]])]
    return first
