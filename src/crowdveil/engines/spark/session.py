"""One model over packed blocks on a cluster: what the driver's loop sees of Spark."""

from __future__ import annotations

import io
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from crowdveil.engines.packing import added, begun, statistics_of, stepped
from crowdveil.engines.spark.notes import Notes
from crowdveil.engines.spark.results import EstimateRows
from crowdveil.engines.spark.rows import (
    CHUNKS,
    STATE,
    STEP,
    Batches,
    add_chunks,
    blocks_in,
    chunk_rows,
    state_row,
    step_rows,
)
from crowdveil.inference.model import Judged, Model, Parameters, Statistics

CHECKPOINT = "checkpoint.npz"
_DIRECT_BYTES = 64 << 20
"""Statistics of all blocks together up to this size are added on the driver: a shuffle would take longer."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a driver was: the parameters of its next pass, the passes before it, and the states it starts from."""

    parameters: Parameters
    passes: int = 0
    generation: int = 0

    def to_bytes(self) -> bytes:
        stream = io.BytesIO()
        stored: dict[str, Any] = {f"p:{name}": value for name, value in self.parameters.items()}
        np.savez(stream, passes=self.passes, generation=self.generation, **stored)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Reached:
        with np.load(io.BytesIO(data)) as stored:
            parameters = {name[2:]: stored[name] for name in stored.files if name.startswith("p:")}
            return cls(parameters, int(stored["passes"]), int(stored["generation"]))


@dataclass(slots=True)
class SparkBlocks:
    """The blocks of one model, their states in Parquet, and checkpoints that a new driver can go on from.

    A model that remembers something from pass to pass (messages) gets its states written anew by each pass, in two
    places by turns: the states that the last checkpoint speaks of are never touched before there is a newer one.
    """

    model: Model
    spark: SparkSession
    folder: str
    notes: Notes
    n_blocks: int
    passes: int = 0
    generation: int = 0
    _direct: bool = field(default=False, init=False)
    _written: float = field(default=float("-inf"), init=False)

    def begin(self, blocks: DataFrame, gold: Mapping[Hashable, int]) -> None:
        """Let the model lay out every block."""
        model = self.model

        def lay_out(batches: Batches) -> Batches:
            for packed in blocks_in(batches):
                if gold:
                    known = np.array([gold.get(name, -1) for name in packed.questions], dtype=np.int32)
                    packed = replace(packed, block=replace(packed.block, gold=known))
                yield state_row(begun(packed, model))

        self._write(blocks.select("questions", "payload").mapInArrow(lay_out, STATE), 0)

    def e_pass(self, parameters: Parameters) -> Statistics:
        self._checkpoint(parameters)
        chunks = self._remembering(parameters) if self.model.remembers else self._counting(parameters)
        self.passes += 1
        if not self._direct:
            chunks = chunks.groupBy("label", "chunk").applyInPandas(add_chunks, CHUNKS)
        rows = [(row["label"], row["chunk"], bytes(row["data"])) for row in chunks.collect()]
        if self._direct:
            return statistics_of(_summed(rows))
        # The sum of all blocks was collected; small ones need no shuffle from now on.
        self._direct = self.n_blocks * sum(len(data) for _, _, data in rows) <= _DIRECT_BYTES
        return statistics_of(rows)

    def _counting(self, parameters: Parameters) -> DataFrame:
        """Statistics only: the states stay as they are, and the questions' ids are not even read."""
        model = self.model

        def count(batches: Batches) -> Batches:
            for packed in blocks_in(batches):
                yield from chunk_rows(stepped(packed, model, parameters)[0])

        return self._states().select("payload").mapInArrow(count, CHUNKS)

    def _remembering(self, parameters: Parameters) -> DataFrame:
        """Statistics and new states in one pass, written together so that neither is computed twice."""
        model = self.model

        def count(batches: Batches) -> Batches:
            for packed in blocks_in(batches):
                yield from step_rows(*stepped(packed, model, parameters))

        self._write(self._states().mapInArrow(count, STEP), self.generation + 1)
        self.generation += 1
        return self._read().filter("label is not null").select("label", "chunk", "data")

    def results(self, parameters: Parameters, rows: EstimateRows, *, informative: bool = True) -> DataFrame:
        """The results of every question; the prior where the reports cannot tell more."""
        model = self.model

        def one(batches: Batches) -> Batches:
            for packed in blocks_in(batches):
                columns = model.finish(packed.block, parameters, packed.state)
                if not informative and isinstance(model, Judged):
                    # Every packed question has a report.
                    columns = columns | model.prior(np.ones(len(packed.questions), dtype=bool), parameters)
                yield rows(packed.questions, columns)

        return self._states().mapInArrow(one, rows.schema)

    def _checkpoint(self, parameters: Parameters) -> None:
        """Written after a pause, or at once if the states moved on: the parameters have to keep up with them."""
        now = time.monotonic()
        if not self.model.remembers and now - self._written < self.notes.pause:
            return
        self.notes.write(CHECKPOINT, Reached(parameters, self.passes, self.generation).to_bytes())
        self._written = now

    def _states(self) -> DataFrame:
        return self._read().filter("payload is not null").select("questions", "payload")

    def _read(self) -> DataFrame:
        return self.spark.read.parquet(self._place(self.generation))

    def _write(self, frame: DataFrame, generation: int) -> None:
        frame.write.mode("overwrite").option("compression", "none").parquet(self._place(generation))

    def _place(self, generation: int) -> str:
        return f"{self.folder}/state-{generation % 2}"


def _summed(rows: list[tuple[str, int, bytes]]) -> list[tuple[str, int, bytes]]:
    parts: dict[tuple[str, int], list[bytes]] = {}
    for label, chunk, data in rows:
        parts.setdefault((label, chunk), []).append(data)
    return [(label, chunk, added(each)) for (label, chunk), each in parts.items()]


def reached_in(notes: Notes) -> Reached | None:
    """What an earlier driver had reached, if anything."""
    data = notes.read(CHECKPOINT)
    return None if data is None else Reached.from_bytes(data)
