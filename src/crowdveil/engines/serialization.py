"""Blocks and statistics as bytes: what travels between a cluster's tasks, without a word about the cluster.

A packed block is one row: the ids of its questions and one pickled (block, state) pair, whose arrays lie behind the
pickle, so that reading it copies none of them. A model that has its own layout needs the rows no more until the results
are judged; they wait beside. Statistics travel as chunks of arrays, so that no task ever has to add more than a chunk.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.estimate import Floor
from crowdveil.inference.protocols import (
    Block,
    Columns,
    HasDiagnosticsPass,
    Judged,
    Model,
    Parameters,
    State,
    Statistics,
    with_prior,
)

Buffer: TypeAlias = bytes | pa.Buffer
NO_QUESTIONS = pa.array([], pa.string())

CHUNK = 1 << 20
"""Elements of a statistics array that are added together in one task."""

BLOCK_REPORTS = 4_000_000
"""A block of more reports would be a row too large to move about."""
FORM = 6
"""Raised whenever a block or a model's state is pickled in another way: what another version packed is then refused."""
_ALIGNED, _WORD = 64, 8


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A block, its state, the ids of its questions (not always read), and its rows where the model let go of them."""

    questions: pa.Array
    block: Block
    state: State = None
    kept: Buffer | None = None

    def to_bytes(self) -> bytes:
        return to_bytes((self.block, self.state))

    @classmethod
    def from_bytes(cls, payload: Buffer, questions: pa.Array = NO_QUESTIONS, kept: Buffer | None = None) -> Packed:
        block, state = from_bytes(payload)
        return cls(questions, block, state, kept)

    @property
    def rows(self) -> Block:
        """The block as it was packed."""
        return self.block if self.kept is None else from_bytes(self.kept)


def to_bytes(value: object) -> bytes:
    """A pickle, its arrays behind it: where each begins is a multiple of 64, and so is the whole."""
    arrays: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    parts = [memoryview(pickled), *(array.raw() for array in arrays)]
    sizes = np.array([len(parts), *(part.nbytes for part in parts)], dtype="<i8")
    return b"".join(
        piece for part in (sizes.data.cast("B"), *parts) for piece in (part, bytes(-part.nbytes % _ALIGNED))
    )


def from_bytes(data: Buffer) -> Any:
    """What was pickled; its arrays are views of `data`, unless nobody may write there or they would not be aligned."""
    view = memoryview(data)
    if view.readonly or np.frombuffer(view, np.uint8).ctypes.data % _WORD:
        view = memoryview(bytearray(view))
    n_parts = int(np.frombuffer(view, "<i8", 1)[0])
    sizes = np.frombuffer(view, "<i8", 1 + n_parts)
    parts, begin = [], 0
    for size in (sizes.nbytes, *sizes[1:].tolist()):
        parts.append(view[begin : begin + size])
        begin += size + -size % _ALIGNED
    return pickle.loads(parts[1], buffers=parts[2:])


class DuplicateError(ValueError):
    """A worker answered a question twice; carries the question."""


def pack(rows: pa.Table) -> Iterator[Packed]:
    """Blocks of whole questions from rows of (question, worker, report), with channel and number if there are any."""
    question, names = _rank_ids(rows["question"])
    worker = rows["worker"].to_numpy()
    pair = question.astype(np.int64) * (int(worker.max()) + 1) + worker
    order = np.argsort(pair)
    _refuse_repeats(pair[order], question[order], names)
    question_code = question[order]
    for first, last in _spans(question_code, len(names)):
        low, high = np.searchsorted(question_code, [first, last])
        part = order[low:high]
        yield Packed(
            names[first:last],
            Block(
                (question_code[low:high] - first).astype(np.int32),
                worker[part].astype(np.int32),
                rows["report"].to_numpy()[part].astype(np.int32),
                _column(rows, "channel", part, np.zeros(len(part), dtype=np.int16)),
                int(last - first),
                _column(rows, "number", part, None),
            ),
        )


def _refuse_repeats(pairs: NDArray[np.int64], question_code: NDArray[np.int32], names: pa.Array) -> None:
    repeats = np.flatnonzero(pairs[1:] == pairs[:-1])
    if len(repeats):
        raise DuplicateError(str(names[int(question_code[repeats[0]])]))


def _column(rows: pa.Table, name: str, part: NDArray[np.int64], missing: Any) -> Any:
    return rows[name].to_numpy()[part] if name in rows.column_names else missing


def _rank_ids(column: pa.ChunkedArray) -> tuple[NDArray[np.int32], pa.Array]:
    """Codes in the order of the ids, and the ids: with rows by worker, the order of arrival then cannot show."""
    encoded = pc.dictionary_encode(column.combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[encoded.indices.to_numpy()], encoded.dictionary.take(pa.array(order))


def _spans(question_code: NDArray[np.int32], n_questions: int) -> list[tuple[int, int]]:
    """Stretches of whole questions with at most BLOCK_REPORTS reports, as far as one question allows."""
    ends = np.cumsum(np.bincount(question_code, minlength=n_questions))
    n_blocks = max(1, -(-len(question_code) // BLOCK_REPORTS))
    inner = np.searchsorted(ends, np.arange(1, n_blocks) * (len(question_code) / n_blocks)) + 1
    borders = np.unique(np.concatenate(([0], np.minimum(inner, n_questions), [n_questions]))).tolist()
    return list(pairwise(borders))


def with_gold(packed: Packed, gold: Mapping[Hashable, int]) -> Packed:
    """The block with the codes of the truths that are known."""
    if not gold:
        return packed
    gold_codes = np.array([gold.get(name, -1) for name in packed.questions.to_pylist()], dtype=np.int32)
    return replace(packed, block=replace(packed.block, gold=gold_codes))


def prepare_packed(packed: Packed, model: Model, *, keeps: bool = False) -> Packed:
    """The block with the state the model starts from; rows that the model has copied go, or stand aside."""
    state = model.begin(packed.block)
    if model.keeps_rows:
        return Packed(packed.questions, packed.block, state)
    raw_block = to_bytes(packed.block) if keeps else None
    return Packed(packed.questions, packed.block.without_rows(), state, raw_block)


def run_pass(packed: Packed, model: Model, parameters: Parameters) -> tuple[Statistics, Packed]:
    """One pass over one block."""
    statistics, state = model.e_step(packed.block, parameters, packed.state)
    return statistics, Packed(packed.questions, packed.block, state, packed.kept)


def run_diagnostics(packed: Packed, model: Model, parameters: Parameters) -> Statistics:
    """What a model that looks once more sees in one block."""
    assert isinstance(model, HasDiagnosticsPass)
    return model.score_pass(packed.block, parameters, packed.state)


def run_results(packed: Packed, model: Model, parameters: Parameters, floor: Floor | None = None) -> Columns:
    """The results of the block's questions; the prior where the reports cannot tell more."""
    columns = model.finish(packed.block, parameters, packed.state)
    if isinstance(model, Judged):
        counts = model.by_channel(packed.state)
        return with_prior(model, floor, columns, counts, parameters, packed.block.gold)
    return columns


def split_statistics(statistics: Statistics) -> Iterator[tuple[str, int, bytes]]:
    """Arrays as (name with shape and type, chunk number, little-endian floats)."""
    for name, value in statistics.items():
        kind = "<f4" if np.asarray(value).dtype == np.float32 else "<f8"
        flat = np.ascontiguousarray(value, dtype=kind).ravel()
        label = json.dumps([name, np.shape(value), kind])
        for number in range(max(1, -(-len(flat) // CHUNK))):
            yield label, number, flat[number * CHUNK : (number + 1) * CHUNK].tobytes()


def add_chunks(label: str, parts: list[bytes]) -> bytes:
    """The sum of chunks as doubles; added in the order of their bytes, so that a job always gives the same digits."""
    kind = json.loads(label)[2]
    first, *others = (np.frombuffer(part, kind) for part in sorted(parts))
    total = first.astype("<f8")
    for other in others:
        total += other
    return total.tobytes()


def join_statistics(chunks: list[tuple[str, int, bytes]]) -> Statistics:
    """The arrays back from their chunks, which have been added."""
    gathered: dict[str, list[tuple[int, bytes]]] = {}
    for label, number, data in chunks:
        gathered.setdefault(label, []).append((number, data))
    statistics: Statistics = {}
    for label, parts in gathered.items():
        name, shape, _ = json.loads(label)
        statistics[name] = np.frombuffer(b"".join(data for _, data in sorted(parts)), "<f8").reshape(shape).copy()
    return statistics
