"""One model over packed blocks on a cluster: what the driver's loop sees of Spark."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from crowdveil.engines.serialization import Packed, prepare_packed, run_diagnostics, run_pass, run_results, with_gold
from crowdveil.engines.spark.broadcast import DiskExchange, Exchange, SparkExchange, sum_chunks
from crowdveil.engines.spark.dataframe_rows import (
    CHUNKS,
    STATE,
    STEP,
    Batches,
    blocks_at,
    blocks_in,
    chunk_rows,
    chunks_at,
    files_in,
    keep_modules,
    state_row,
)
from crowdveil.engines.spark.job import Job, check_same
from crowdveil.engines.spark.results import EstimateRows
from crowdveil.estimate import Floor
from crowdveil.inference.base import Method
from crowdveil.inference.parallel import processors
from crowdveil.inference.protocols import Model, Parameters, Statistics, add

CHECKPOINT = "checkpoint.npz"
AS_PACKED = -1
"""The generation of blocks that no model has laid out."""
DIRECT_BYTES = 256 << 20
"""Statistics of all tasks together up to this size are added on the driver: a shuffle would take longer."""
BY_FILES = 8
"""So many times that much from files, because it holds one of them at a time."""
COUNTED_PER_TASK = 12_500_000
"""Counting is so fast that a task should count several files: starting it takes as long as this many reports."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a driver was: the parameters of its next pass, the passes before it, and the states it starts from."""

    parameters: Parameters
    passes: int = 0
    generation: int = 0
    packing: str = ""
    run: Mapping[str, str] = field(default_factory=dict)
    """Method and settings: nobody else may go on from here."""

    def to_bytes(self) -> bytes:
        stream = io.BytesIO()
        stored: dict[str, Any] = {f"p:{name}": value for name, value in self.parameters.items()}
        np.savez(stream, about=json.dumps([self.passes, self.generation, self.packing, dict(self.run)]), **stored)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Reached:
        with np.load(io.BytesIO(data)) as stored:
            parameters = {name[2:]: stored[name] for name in stored.files if name.startswith("p:")}
            return cls(parameters, *json.loads(str(stored["about"])))


@dataclass(slots=True)
class SparkBlocks:
    """The blocks of one model, their states in Parquet, and checkpoints that a new driver can go on from.

    A model that remembers something from pass to pass (messages) gets its states written anew by each pass, in two
    places by turns: the states that the last checkpoint speaks of are never touched before there is a newer one.
    """

    model: Model
    job: Job
    run: Mapping[str, str] = field(default_factory=dict)
    keeps: bool = False
    """The rows are needed again when all is done: they stand beside the states."""
    passes: int = 0
    generation: int = AS_PACKED
    _bytes: int = field(init=False)
    """What the statistics of all tasks together take."""
    _written: float = field(default=float("-inf"), init=False)

    def __post_init__(self) -> None:
        """Statistics are at most about this large; once a pass has shown how large they are, that counts."""
        context = self.job.context
        most = context.n_workers * max(context.domain.size + 1, 16) ** 2 * 8
        self._bytes = self.job.sizes.n_tasks * most

    @property
    def _small(self) -> bool:
        return self._bytes <= DIRECT_BYTES

    def begin(self, gold: Mapping[Hashable, int]) -> None:
        """Let the model lay out every block."""
        model, keeps = self.model, self.keeps
        tasks, blocks = self._blocks("questions", "payload")

        def lay_out(batches: Batches) -> Batches:
            for packed in blocks(batches):
                yield state_row(prepare_packed(with_gold(packed, gold), model, keeps=keeps))

        self._write(tasks.mapInArrow(lay_out, STATE), 0)
        self.generation = 0

    def go_on(self) -> Parameters | None:
        """Take over where an earlier driver was, and return its parameters; None if it had not begun."""
        data = self.job.notes.read(CHECKPOINT) if self.job.resumed else None
        if data is None:
            return None
        reached = Reached.from_bytes(data)
        if reached.packing != self.job.packing:
            return None
        check_same(reached.run, self.run)
        self.passes, self.generation = reached.passes, reached.generation
        return reached.parameters

    @property
    def threads(self) -> int:
        return processors()

    def e_pass(self, parameters: Parameters) -> Statistics:
        self._checkpoint(parameters)
        total = self._remembering(parameters) if self.model.remembers else self._counting(parameters)
        self.passes += 1
        return total

    def score_pass(self, parameters: Parameters) -> Statistics:
        model = self.model
        return self._sum_over_blocks(
            "payload", parameters=parameters, count=lambda packed, known: run_diagnostics(packed, model, known)
        )

    def _counting(self, parameters: Parameters) -> Statistics:
        """Statistics only: the states stay as they are, and nothing but them is read."""
        model = self.model
        return self._sum_over_blocks(
            "payload", parameters=parameters, count=lambda packed, known: run_pass(packed, model, known)[0]
        )

    def _remembering(self, parameters: Parameters) -> Statistics:
        """Statistics and new states in one pass, written together so that neither is computed twice."""
        model, given = self.model, self._exchange().send(parameters)
        tasks, blocks = self._blocks("questions", "payload", "kept")

        def count(batches: Batches) -> Batches:
            total, known = Statistics(), given()
            for packed in blocks(batches):
                statistics, moved = run_pass(packed, model, known)
                total = add(total, statistics)
                yield state_row(moved, STEP)
            keep_modules()
            yield from chunk_rows(total, STEP)

        self._write(tasks.mapInArrow(count, STEP), self.generation + 1)
        self.generation += 1
        return self._written_total()

    def results(self, parameters: Parameters, rows: EstimateRows, floor: Floor | None = None) -> DataFrame:
        """The results of every question; the prior where the reports cannot tell more."""
        model = self.model
        tasks, blocks = self._blocks("questions", "payload")

        def one(batches: Batches) -> Batches:
            for packed in blocks(batches):
                yield rows(packed.questions, run_results(packed, model, parameters, floor))

        return tasks.mapInArrow(one, rows.schema)

    def tally(self, method: Method, parameters: Parameters) -> Statistics:
        """What the method counts over rows and results for its closing words."""
        model, context = self.model, self.job.context

        def count(packed: Packed, known: Parameters) -> Statistics:
            return method.tally(packed.rows, run_results(packed, model, known), context)

        return self._sum_over_blocks("payload", "kept", parameters=parameters, count=count)

    def _sum_over_blocks(
        self, *columns: str, parameters: Parameters, count: Callable[[Packed, Parameters], Statistics]
    ) -> Statistics:
        """What `count` finds in each block under these parameters, summed over all blocks."""
        exchange = self._exchange()
        receive, (tasks, blocks) = exchange.send(parameters), self._blocks(*columns, per_task=COUNTED_PER_TASK)

        def work(batches: Batches) -> Batches:
            total, known = Statistics(), receive()
            for packed in blocks(batches):
                total = add(total, count(packed, known))
            keep_modules()
            yield from exchange.back(total)

        return self._add_weights(exchange.total(tasks.mapInArrow(work, CHUNKS)))

    def _written_total(self) -> Statistics:
        """The sum of the statistics that stand beside the states."""
        files = self._files()
        if files and self._small:
            return self._add_weights(sum_chunks(chunks_at(files)))
        rows = self._read().filter("label is not null").select("label", "chunk", "data")
        return self._add_weights(SparkExchange(self._small).total(rows))

    def _exchange(self) -> Exchange:
        """By files if tasks and driver share a disk: the blocks that tasks wrote can be seen from here."""
        if self._files() and self._bytes <= BY_FILES * DIRECT_BYTES:
            return DiskExchange(str(Path(self.job.folder, "exchange").absolute()))
        return SparkExchange(self._small)

    def _add_weights(self, total: Statistics) -> Statistics:
        self._bytes = self.job.sizes.n_tasks * sum(value.nbytes for value in total.values())
        return total

    def _checkpoint(self, parameters: Parameters) -> None:
        """Written after a pause, or at once if the states moved on: the parameters have to keep up with them."""
        now = time.monotonic()
        notes = self.job.notes
        if not self.model.remembers and now - self._written < notes.pause:
            return
        reached = Reached(parameters, self.passes, self.generation, self.job.packing, self.run)
        notes.write(CHECKPOINT, reached.to_bytes())
        self._written = now

    def _blocks(self, *columns: str, per_task: int = 0) -> tuple[DataFrame, Callable[[Batches], Iterator[Packed]]]:
        """The tasks of a pass and how each reads its blocks: from a disk by itself, else as Spark hands them over.

        A task gets one file, or of those on a disk as many as `per_task` reports are in.
        """
        files = self._files()
        if not files:
            return self._read().filter("payload is not null").select(*columns), blocks_in
        n_tasks = len(files)
        if per_task:
            n_tasks = min(n_tasks, max(2, -(-self.job.context.n_reports // per_task)))
        return self.job.reports.spark.range(0, len(files), 1, n_tasks), blocks_at(files, columns)

    def _files(self) -> list[str]:
        return files_in(self._place(self.generation))

    def _read(self) -> DataFrame:
        # With its schema told, Spark need not open the files before it plans.
        return self.job.reports.spark.read.schema(STEP).parquet(self._place(self.generation))

    def _write(self, frame: DataFrame, generation: int) -> None:
        frame.write.mode("overwrite").option("compression", "none").parquet(self._place(generation))

    def _place(self, generation: int) -> str:
        return f"{self.job.folder}/{'packed' if generation == AS_PACKED else f'state-{generation % 2}'}"
