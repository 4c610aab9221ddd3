"""A table packed into blocks in a work folder, and the note by which a later driver knows the job as its own."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crowdveil.engines.spark.notes import Notes
from crowdveil.engines.spark.rows import PACKED, Batches, packed_rows
from crowdveil.engines.spark.table import SparkReports, checked, coded, numbered_workers
from crowdveil.errors import FileError, InputError
from crowdveil.files.problems import answered_twice
from crowdveil.files.reports import domain_json
from crowdveil.inference.base import Method
from crowdveil.inference.fitting import configuration
from crowdveil.inference.model import Context

REPORTS_PER_BLOCK = 5_000_000
"""Few fat blocks: a task costs about 50 ms before it computes anything."""
_NOTE = "job.json"


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes two jobs the same job."""

    source: str
    method: str
    settings: str
    channels: str
    domain: str


@dataclass(frozen=True, slots=True)
class Sizes:
    """What packing counted."""

    n_workers: int
    n_questions: int
    n_blocks: int
    by_channel: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A table that has been packed; `workers` holds ids and codes."""

    reports: SparkReports
    folder: str
    sizes: Sizes
    resumed: bool

    @property
    def workers(self) -> DataFrame:
        return self.reports.spark.read.parquet(f"{self.folder}/workers")

    @property
    def blocks(self) -> DataFrame:
        return self.reports.spark.read.parquet(f"{self.folder}/packed").select("questions", "payload")

    @property
    def by_channel(self) -> NDArray[np.int64]:
        return np.array(self.sizes.by_channel, dtype=np.int64)

    @property
    def context(self) -> Context:
        n_reports = sum(self.sizes.by_channel)
        return Context(
            self.reports.domain, self.reports.channels, self.sizes.n_workers, self.sizes.n_questions, n_reports
        )


def identity_of(method: Method, reports: SparkReports) -> Identity:
    """The job's source, method, channels and domain; long parts by their hash."""
    settings = configuration(method) | {"gold": sorted(map(str, getattr(method, "gold", {}).items()))}
    return Identity(
        reports.source,
        method.name,
        _hash(settings),
        _hash([channel.sha256 for channel in reports.channels]),
        _hash(domain_json(reports.domain)),
    )


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def packed_job(
    reports: SparkReports, folder: str, notes: Notes, identity: Identity, *, n_blocks: int | None, resume: bool
) -> Job:
    """Pack the table, or find that an earlier driver has done so."""
    note = notes.read(_NOTE) if resume else None
    if note is not None:
        return Job(reports, folder, _same_job(json.loads(note), identity), True)
    rows, n_rows = checked(reports)
    workers = numbered_workers(reports, folder)
    blocks = _pack(coded(rows, workers), folder, n_blocks or max(2, -(-n_rows // REPORTS_PER_BLOCK)), reports)
    job = Job(reports, folder, _sizes(blocks, workers.count()), False)
    # Written last: whoever finds the note finds everything it speaks of.
    notes.write(_NOTE, json.dumps({"identity": asdict(identity), "sizes": asdict(job.sizes)}).encode())
    return job


def _same_job(note: dict[str, Any], identity: Identity) -> Sizes:
    for name, ours in asdict(identity).items():
        theirs = note["identity"].get(name)
        if ours != theirs:
            short = name in ("source", "method")
            said = f"another {name} ({theirs!r} instead of {ours!r})" if short else f"another {name}"
            raise InputError(f"the job in this folder has {said}", fix="repeat its command, or leave --resume out")
    return Sizes(**note["sizes"])


def _pack(rows: DataFrame, folder: str, n_blocks: int, reports: SparkReports) -> DataFrame:
    """Blocks of whole questions, written once; a worker who answered a question twice is refused."""
    n_channels = len(reports.channels)

    def pack(batches: Batches) -> Batches:
        yield from packed_rows(batches, n_channels)

    packed = rows.repartition(n_blocks, "question").mapInArrow(pack, PACKED)
    packed.write.mode("overwrite").option("compression", "none").parquet(f"{folder}/packed")
    blocks = reports.spark.read.parquet(f"{folder}/packed")
    twice = blocks.filter("duplicate is not null").select("duplicate").first()
    if twice is not None:
        problem = answered_twice()
        raise FileError(problem.sentence, fix=problem.fix, field=problem.field, source=f"question {twice[0]!r}")
    return blocks


def _sizes(blocks: DataFrame, n_workers: int) -> Sizes:
    """A few numbers from each block; the blocks are few."""
    rows = blocks.select(F.size("questions").alias("questions"), "by_channel").collect()
    by_channel = [sum(counts) for counts in zip(*(row["by_channel"] for row in rows), strict=True)]
    return Sizes(n_workers, sum(row["questions"] for row in rows), len(rows), by_channel)
