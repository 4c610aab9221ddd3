"""Blocks and statistics as bytes: what travels between a cluster's tasks, without a word about the cluster.

A packed block is one row: the ids of its questions and one pickled (block, state) pair. Statistics travel as chunks
of arrays, so that no task ever has to add more than a chunk.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.answers import check_unique
from crowdveil.inference.model import Block, Model, Parameters, State, Statistics
from crowdveil.reports import AnyChannel, Reports

Buffer: TypeAlias = bytes | pa.Buffer

CHUNK = 1 << 20
"""Elements of a statistics array that are added together in one task."""

BLOCK_REPORTS = 4_000_000
"""A block of more reports would be a row too large to move about."""


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A block, its state and the ids of its questions."""

    questions: list[str]
    block: Block
    state: State = None

    def to_bytes(self) -> bytes:
        return pickle.dumps((self.block, self.state), protocol=5)

    @classmethod
    def from_bytes(cls, questions: list[str], payload: Buffer) -> Packed:
        return cls(questions, *pickle.loads(payload))


class DuplicateError(ValueError):
    """A worker answered a question twice; carries the two ids."""


def pack(rows: pa.Table) -> Iterator[Packed]:
    """Blocks of whole questions from rows of (question, worker, report, channel, number)."""
    question, names = _ranked(rows["question"])
    worker = rows["worker"].to_numpy()
    repeated = check_unique(worker, question, len(names))
    if repeated is not None:
        raise DuplicateError(str(names[question[repeated]]))
    table = {name: rows[name].to_numpy() for name in ("report", "channel", "number")}
    order = np.lexsort((worker, question))
    place = question[order]
    for first, last in _spans(place, len(names)):
        low, high = np.searchsorted(place, [first, last])
        part = order[low:high]
        number = table["number"][part]
        yield Packed(
            names[first:last].to_pylist(),
            Block(
                (place[low:high] - first).astype(np.int32),
                worker[part].astype(np.int32),
                table["report"][part].astype(np.int32),
                table["channel"][part].astype(np.int16),
                int(last - first),
                None if np.isnan(number).all() else number,
            ),
        )


def _ranked(column: pa.ChunkedArray) -> tuple[NDArray[np.int32], pa.Array]:
    """Codes in the order of the ids, and the ids: with rows by worker, the order of arrival then cannot show."""
    encoded = pc.dictionary_encode(column.combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[encoded.indices.to_numpy()], encoded.dictionary.take(pa.array(order))


def _spans(place: NDArray[np.int32], n_questions: int) -> list[tuple[int, int]]:
    """Stretches of whole questions with at most BLOCK_REPORTS reports, as far as one question allows."""
    ends = np.cumsum(np.bincount(place, minlength=n_questions))
    n_blocks = max(1, -(-len(place) // BLOCK_REPORTS))
    inner = np.searchsorted(ends, np.arange(1, n_blocks) * (len(place) / n_blocks)) + 1
    borders = np.unique(np.concatenate(([0], np.minimum(inner, n_questions), [n_questions]))).tolist()
    return list(pairwise(borders))


def begun(packed: Packed, model: Model) -> Packed:
    """The block with the state the model starts from, without rows the model has copied."""
    state = model.begin(packed.block)
    return Packed(packed.questions, packed.block if model.keeps_rows else packed.block.without_rows(), state)


def stepped(packed: Packed, model: Model, parameters: Parameters) -> tuple[Statistics, Packed]:
    """One pass over one block."""
    statistics, state = model.e_step(packed.block, parameters, packed.state)
    return statistics, Packed(packed.questions, packed.block, state)


def chunks_of(statistics: Statistics) -> Iterator[tuple[str, int, bytes]]:
    """Arrays as (name with shape, chunk number, little-endian doubles)."""
    for name, value in statistics.items():
        flat = np.ascontiguousarray(value, dtype="<f8").ravel()
        label = json.dumps([name, np.shape(value)])
        for number in range(max(1, -(-len(flat) // CHUNK))):
            yield label, number, flat[number * CHUNK : (number + 1) * CHUNK].tobytes()


def added(parts: list[bytes]) -> bytes:
    """The sum of chunks; added in the order of their bytes, so that the same job gives the same digits."""
    return np.sum([np.frombuffer(part, "<f8") for part in sorted(parts)], axis=0, dtype=np.float64).tobytes()


def statistics_of(chunks: list[tuple[str, int, bytes]]) -> Statistics:
    """The arrays back from their chunks."""
    gathered: dict[str, list[tuple[int, bytes]]] = {}
    for label, number, data in chunks:
        gathered.setdefault(label, []).append((number, data))
    statistics: Statistics = {}
    for label, parts in gathered.items():
        name, shape = json.loads(label)
        statistics[name] = np.frombuffer(b"".join(data for _, data in sorted(parts)), "<f8").reshape(shape).copy()
    return statistics


def as_reports(packed: Packed, n_workers: int, channels: tuple[AnyChannel, ...], domain: Any) -> Reports:
    """A block as a table of its own, for methods that look at one question at a time."""
    block = packed.block
    return Reports(
        block.worker,
        block.question,
        block.report,
        block.channel,
        np.arange(n_workers),
        np.array(packed.questions, dtype=object),
        channels,
        domain,
        block.number,
    )
