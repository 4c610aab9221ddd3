"""How parameters reach the tasks of a pass, and how their statistics come back as one sum.

On their way through Spark both are copied and compressed several times, which takes longer than most passes. Where the
driver and the tasks share a disk they are files on it, and only the names of those files travel.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
from pyspark import TaskContext
from pyspark.sql import DataFrame

from crowdveil.engines.serialization import add_chunks, join_statistics
from crowdveil.engines.spark.dataframe_rows import CHUNKS, Batches, add_chunk_group, chunk_rows, row
from crowdveil.inference.protocols import Parameters, Statistics, add


class Exchange(Protocol):
    """Between a driver and the tasks of one pass."""

    def send(self, parameters: Parameters) -> Callable[[], Parameters]:
        """What a task calls to get the parameters."""

    def back(self, statistics: Statistics) -> Batches:
        """The rows, with the columns of CHUNKS, by which a task returns what it counted."""

    def total(self, rows: DataFrame) -> Statistics:
        """The sum of what all tasks returned."""


@dataclass(frozen=True, slots=True)
class DiskExchange:
    """Files that each are written once: a task that dies leaves one that no row speaks of."""

    folder: str

    def send(self, parameters: Parameters) -> Callable[[], Parameters]:
        # What an earlier pass left, even one of a driver that died, nobody needs any more.
        shutil.rmtree(self.folder, ignore_errors=True)
        return partial(_read, self._write(dict(parameters)))

    def back(self, statistics: Statistics) -> Batches:
        task = TaskContext.get()
        yield row(CHUNKS, label=self._write(statistics), chunk=task.partitionId() if task else 0, data=b"")

    def total(self, rows: DataFrame) -> Statistics:
        """Added in the order of the blocks, so that a job always gives the same digits."""
        total: Statistics = {}
        for _, file in sorted((number, label) for label, number, _ in collect_chunks(rows)):
            part = _read(file)
            total = add(total, part) if total else {name: np.asarray(part[name], np.float64) for name in part}
        shutil.rmtree(self.folder, ignore_errors=True)
        return total

    def _write(self, arrays: dict[str, Any]) -> str:
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / uuid4().hex
        with file.open("wb") as stream:
            pickle.dump(arrays, stream, protocol=5)
        return str(file)


@dataclass(frozen=True, slots=True)
class SparkExchange:
    """Parameters go with the tasks; statistics are added on the driver if they are `small`, else chunk by chunk."""

    small: bool

    def send(self, parameters: Parameters) -> Callable[[], Parameters]:
        return lambda: parameters

    def back(self, statistics: Statistics) -> Batches:
        return chunk_rows(statistics)

    def total(self, rows: DataFrame) -> Statistics:
        if self.small:
            return sum_chunks(collect_chunks(rows))
        return join_statistics(collect_chunks(rows.groupBy("label", "chunk").applyInPandas(add_chunk_group, CHUNKS)))


def collect_chunks(chunks: DataFrame) -> list[tuple[str, int, bytes]]:
    """Through Arrow where Spark may: rows one by one would take longer than the pass."""
    frame = chunks.toPandas()
    return [(row.label, int(row.chunk), bytes(row.data)) for row in frame.itertuples()]


def sum_chunks(rows: list[tuple[str, int, bytes]]) -> Statistics:
    """The chunks of all tasks as one sum."""
    parts: dict[tuple[str, int], list[bytes]] = {}
    for label, chunk, data in rows:
        parts.setdefault((label, chunk), []).append(data)
    return join_statistics([(label, chunk, add_chunks(label, each)) for (label, chunk), each in parts.items()])


def _read(file: str) -> dict[str, Any]:
    with Path(file).open("rb") as stream:
        payload: dict[str, Any] = pickle.load(stream)
    return payload
