"""One model over packed blocks on a cluster: what the driver's loop sees of Spark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from crowdveil.engines.packing import (
    DuplicateError,
    Packed,
    added,
    begun,
    chunks_of,
    pack,
    statistics_of,
    stepped,
)
from crowdveil.errors import FileError
from crowdveil.files.problems import answered_twice
from crowdveil.inference.model import Columns, Model, Parameters, Statistics

Batches = Iterator[pa.RecordBatch]
PACKED = "questions array<string>, payload binary, n_reports long, duplicate string"
STATE = "questions array<string>, payload binary"
CHUNKS = "label string, chunk int, data binary"
STEP = f"{STATE}, {CHUNKS}"
_DIRECT_BYTES = 64 << 20
"""Statistics of all blocks together up to this size are added on the driver: a shuffle would take longer."""


def pack_blocks(rows: DataFrame, folder: str, n_blocks: int) -> DataFrame:
    """Blocks of whole questions, written once; a worker who answered a question twice is refused."""
    spark = rows.sparkSession
    packed = rows.repartition(n_blocks, "question").mapInArrow(_pack, PACKED)
    packed.write.mode("overwrite").option("compression", "none").parquet(f"{folder}/packed")
    blocks = spark.read.parquet(f"{folder}/packed")
    twice = blocks.filter("duplicate is not null").select("duplicate").first()
    if twice is not None:
        problem = answered_twice()
        raise FileError(problem.sentence, fix=problem.fix, field=problem.field, source=f"question {twice[0]!r}")
    return blocks


def _pack(batches: Batches) -> Batches:
    tables = [batch for batch in batches if batch.num_rows]
    if not tables:
        return
    try:
        for packed in pack(pa.Table.from_batches(tables)):
            yield _row(packed.questions, packed.to_bytes(), len(packed.block), None)
    except DuplicateError as twice:
        yield _row([], b"", 0, str(twice))


def _row(questions: list[str], payload: bytes, n_reports: int, duplicate: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([questions], pa.list_(pa.string())),
            pa.array([payload], pa.binary()),
            pa.array([n_reports], pa.int64()),
            pa.array([duplicate], pa.string()),
        ],
        names=["questions", "payload", "n_reports", "duplicate"],
    )


@dataclass(slots=True)
class SparkBlocks:
    """The blocks of one model, their states in Parquet, and a checkpoint that a new driver can go on from.

    States of models that remember something from pass to pass (messages) are written anew by each pass; all others
    stay as they were begun.
    """

    model: Model
    spark: SparkSession
    folder: str
    generation: int = 0
    _direct: bool = field(default=False, init=False)

    @property
    def remembers(self) -> bool:
        return self.model.remembers

    def begin(self, blocks: DataFrame, gold: Mapping[Hashable, int]) -> None:
        """Let the model lay out every block."""
        model = self.model

        def lay_out(batches: Batches) -> Batches:
            for questions, payload in payloads(batches):
                packed = Packed.from_bytes(questions, payload)
                if gold:
                    known = np.array([gold.get(name, -1) for name in questions], dtype=np.int32)
                    packed = replace(packed, block=replace(packed.block, gold=known))
                laid = begun(packed, model)
                yield _state_row(laid)

        self._write(blocks.select("questions", "payload").mapInArrow(lay_out, STATE), 0)

    def e_pass(self, parameters: Parameters) -> Statistics:
        self.checkpoint(parameters)
        chunks = self._remembering(parameters) if self.remembers else self._counting(parameters)
        if not self._direct:
            chunks = chunks.groupBy("label", "chunk").applyInPandas(_add_chunks, CHUNKS)
        rows = [(row["label"], row["chunk"], bytes(row["data"])) for row in chunks.collect()]
        return statistics_of(self._summed(rows))

    def _summed(self, rows: list[tuple[str, int, bytes]]) -> list[tuple[str, int, bytes]]:
        if not self._direct:
            # One sum of all blocks was collected; small ones need no shuffle from now on.
            n_blocks = max(1, self._blocks().count())
            self._direct = n_blocks * sum(len(data) for _, _, data in rows) <= _DIRECT_BYTES
            return rows
        parts: dict[tuple[str, int], list[bytes]] = {}
        for label, chunk, data in rows:
            parts.setdefault((label, chunk), []).append(data)
        return [(label, chunk, added(each)) for (label, chunk), each in parts.items()]

    def _counting(self, parameters: Parameters) -> DataFrame:
        """Statistics only: the states stay as they are."""
        model = self.model

        def count(batches: Batches) -> Batches:
            for _, payload in payloads(batches, with_questions=False):
                statistics, _ = stepped(Packed.from_bytes([], payload), model, parameters)
                yield from _chunk_rows(statistics)

        return self._blocks().select("payload").mapInArrow(count, CHUNKS)

    def _remembering(self, parameters: Parameters) -> DataFrame:
        """Statistics and new states in one pass, written together so that neither is computed twice."""
        model = self.model

        def count(batches: Batches) -> Batches:
            for questions, payload in payloads(batches):
                statistics, packed = stepped(Packed.from_bytes(questions, payload), model, parameters)
                yield from _step_rows(statistics, packed)

        self._write(self._blocks().select("questions", "payload").mapInArrow(count, STEP), self.generation + 1)
        self._forget(self.generation - 1)
        self.generation += 1
        return self._read(self.generation).filter("label is not null").select("label", "chunk", "data")

    def finish(self, parameters: Parameters) -> Columns:
        raise NotImplementedError("results of a cluster go to Parquet: see write_estimates")

    def finished(self, parameters: Parameters, rows_of: Any, schema: Any) -> DataFrame:
        """The results of every question as a DataFrame."""
        model = self.model

        def one(batches: Batches) -> Batches:
            for questions, payload in payloads(batches):
                packed = Packed.from_bytes(questions, payload)
                yield rows_of(questions, model.finish(packed.block, parameters, packed.state))

        return self._blocks().select("questions", "payload").mapInArrow(one, schema)

    def checkpoint(self, parameters: Parameters) -> None:
        """Parameters and the generation of the states, in one file that appears whole or not at all."""
        path = checkpoint_path(self.folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.npz")
        stored: dict[str, Any] = {**parameters, "__generation__": np.array(self.generation)}
        np.savez(temporary, **stored)
        temporary.replace(path)

    def _blocks(self) -> DataFrame:
        frame = self._read(self.generation)
        return frame.filter("payload is not null") if self.remembers else frame

    def _read(self, generation: int) -> DataFrame:
        frame = self.spark.read.parquet(f"{self.folder}/state-{generation}")
        missing = [name for name in ("label",) if name not in frame.columns]
        return frame.withColumns({name: F.lit(None).cast("string") for name in missing}) if missing else frame

    def _write(self, frame: DataFrame, generation: int) -> None:
        frame.write.mode("overwrite").option("compression", "none").parquet(f"{self.folder}/state-{generation}")

    def _forget(self, generation: int) -> None:
        if generation >= 0 and "://" not in self.folder:
            shutil.rmtree(Path(self.folder) / f"state-{generation}", ignore_errors=True)


def checkpoint_path(folder: str) -> Path:
    """On the driver's own disk where the folder is not a path: object stores rename slowly or not at all."""
    if "://" in folder:
        return Path.home() / ".cache" / "crowdveil" / f"{folder.split('://')[1].replace('/', '-')}.npz"
    return Path(folder) / "parameters.npz"


def load_checkpoint(folder: str) -> tuple[Parameters, int] | None:
    """What an earlier driver had reached, if anything."""
    path = checkpoint_path(folder)
    if not path.is_file():
        return None
    with np.load(path) as stored:
        parameters = {name: stored[name] for name in stored.files if name != "__generation__"}
        return parameters, int(stored["__generation__"])


def payloads(batches: Batches, *, with_questions: bool = True) -> Iterator[tuple[list[str], bytes]]:
    """The packed blocks of a partition, one after the other."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        for index in range(batch.num_rows):
            questions = table["questions"][index].as_py() if with_questions else []
            yield questions, table["payload"][index].as_py()


def _state_row(packed: Packed) -> pa.RecordBatch:
    arrays = [pa.array([packed.questions], pa.list_(pa.string())), pa.array([packed.to_bytes()], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, names=["questions", "payload"])


def _chunk_rows(statistics: Statistics) -> Batches:
    for label, chunk, data in chunks_of(statistics):
        arrays = [pa.array([label]), pa.array([chunk], pa.int32()), pa.array([data], pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, names=["label", "chunk", "data"])


def _step_rows(statistics: Statistics, packed: Packed) -> Batches:
    names = ["questions", "payload", "label", "chunk", "data"]
    kinds = [pa.list_(pa.string()), pa.binary(), pa.string(), pa.int32(), pa.binary()]

    def row(*values: object) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array([v], k) for v, k in zip(values, kinds, strict=True)], names=names)

    yield row(packed.questions, packed.to_bytes(), None, None, None)
    for label, chunk, data in chunks_of(statistics):
        yield row(None, None, label, chunk, data)


def _add_chunks(rows: Any) -> Any:
    """One chunk of one array from all blocks: a pandas frame in, one row out."""
    first = rows.iloc[[0]].copy()
    first["data"] = [added([bytes(data) for data in rows["data"]])]
    return first
