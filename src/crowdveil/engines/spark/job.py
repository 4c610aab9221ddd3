"""A table packed into blocks in a work folder, and the note by which a later driver knows the job as its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from crowdveil import __version__
from crowdveil.engines.checkpoints import Notes
from crowdveil.engines.serialization import FORM
from crowdveil.engines.spark.checkpoints import notes_in
from crowdveil.engines.spark.dataframe_rows import PACKED, Batches, packed_rows
from crowdveil.engines.spark.read import SparkReports, checked, coded, numbered_workers, refused, workers_in
from crowdveil.errors import InputError
from crowdveil.files.problems import answered_twice
from crowdveil.files.reports import domain_json
from crowdveil.inference.engine.blocks import are_answers, rarest_of
from crowdveil.inference.protocols import Context

REPORTS_PER_TASK = 5_000_000
"""Few fat tasks: each costs about 50 ms before it computes anything."""
_NOTE = "job.json"


@dataclass(frozen=True, slots=True)
class Sizes:
    """What packing counted; `n_tasks` is how many share the blocks."""

    n_workers: int
    n_questions: int
    n_tasks: int
    by_channel: list[int]
    by_option: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A table that has been packed; `workers` holds ids and codes."""

    reports: SparkReports
    folder: str
    notes: Notes
    sizes: Sizes
    packing: str
    """Names this packing: a checkpoint of an earlier one says nothing about it."""
    resumed: bool

    @property
    def workers(self) -> DataFrame:
        return workers_in(self.reports.spark, self.folder)

    @property
    def by_channel(self) -> NDArray[np.int64]:
        return np.array(self.sizes.by_channel, dtype=np.int64)

    @property
    def context(self) -> Context:
        sizes = self.sizes
        return Context(
            self.reports.domain,
            self.reports.channels,
            sizes.n_workers,
            sizes.n_questions,
            sum(sizes.by_channel),
            rarest=rarest_of(np.array(sizes.by_option, dtype=np.int64)),
        )


def pack_on_spark(reports: SparkReports, work: str | Path, *, n_blocks: int | None = None, resume: bool = False) -> Job:
    """Pack the table into `work`, for one fit or several; with `resume`, find that an earlier driver has done so."""
    folder = str(work)
    notes = notes_in(folder, reports.spark)
    left = notes.read(_NOTE) if resume else None
    if left is not None:
        found = json.loads(left)
        check_same(found["table"], _identity(reports))
        return Job(reports, folder, notes, Sizes(**found["sizes"]), found["packing"], True)
    rows, n_rows = checked(reports)
    workers, n_workers = numbered_workers(reports, folder)
    n_tasks = n_blocks or max(2, -(-n_rows // REPORTS_PER_TASK))
    n_questions, *counts = _pack(coded(rows, workers, reports.channels), folder, n_tasks, reports)
    check_complete(sum(counts[0]), n_rows, folder)
    job = Job(reports, folder, notes, Sizes(n_workers, n_questions, n_tasks, *counts), uuid4().hex, False)
    # Written last: whoever finds the note finds everything it speaks of.
    note = {"table": _identity(reports), "sizes": asdict(job.sizes), "packing": job.packing}
    notes.write(_NOTE, json.dumps(note).encode())
    return job


def _identity(reports: SparkReports) -> dict[str, str]:
    """What makes two tables the same; long parts by their hash."""
    channels = [channel.sha256 for channel in reports.channels]
    return {
        # First, because nothing else in the folder can be read if it differs.
        "version of crowdveil": f"{__version__}, form {FORM}",
        "source": reports.source,
        "channels": hashed(channels),
        "domain": hashed(domain_json(reports.domain)),
    }


def check_same(theirs: Mapping[str, str], ours: Mapping[str, str]) -> None:
    """Refuse to go on with another job than the one that was begun."""
    for name, value in ours.items():
        if value != theirs.get(name):
            short = name in ("version of crowdveil", "source", "method")
            said = f"another {name} ({theirs.get(name)!r} instead of {value!r})" if short else f"another {name}"
            raise InputError(f"the job in this folder has {said}", fix="repeat its command, or do not resume")


def check_complete(packed: int, n_rows: int, folder: str) -> None:
    """Refuse to infer from a part: machines that share no disk each see only the blocks that they wrote."""
    if packed != n_rows:
        raise InputError(
            f"{packed} of {n_rows} packed reports can be seen in the work folder {folder!r}",
            fix="let it be a folder that the driver and all machines of the cluster share",
        )


def hashed(value: object) -> str:
    """A value that is too long for a note."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _pack(rows: DataFrame, folder: str, n_tasks: int, reports: SparkReports) -> tuple[int, list[int], list[int]]:
    """Blocks of whole questions, written once; a worker who answered a question twice is refused.

    Questions, reports by channel and answers by option come back: some numbers from each block, and blocks are few.
    """
    n_channels, n_options = len(reports.channels), reports.domain.size if are_answers(reports.channels) else 0

    def pack(batches: Batches) -> Batches:
        yield from packed_rows(batches, n_channels, n_options)

    packed = rows.repartition(n_tasks, "question").mapInArrow(pack, PACKED)
    packed.write.mode("overwrite").option("compression", "none").parquet(f"{folder}/packed")
    written = reports.spark.read.schema(PACKED).parquet(f"{folder}/packed")
    blocks = written.select("n_questions", "by_channel", "by_option", "duplicate").collect()
    for block in blocks:
        if block["duplicate"] is not None:
            raise refused(answered_twice(), f"question {block['duplicate']!r}")
    by_channel, by_option = (np.sum([block[name] for block in blocks], axis=0) for name in ("by_channel", "by_option"))
    return sum(block["n_questions"] for block in blocks), by_channel.tolist(), by_option.tolist()
