"""Fit a method on Spark: pack, iterate with the shared driver, and leave the estimates in Parquet."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crowdveil.engines.packing import Packed, as_reports
from crowdveil.engines.spark.results import EstimateRows, write_workers
from crowdveil.engines.spark.session import SparkBlocks, load_checkpoint, pack_blocks, payloads
from crowdveil.engines.spark.table import SparkReports, coded, numbered_workers
from crowdveil.errors import InputError
from crowdveil.estimate import Estimate
from crowdveil.inference.base import IterativeMethod, Method
from crowdveil.inference.driver import Run, run
from crowdveil.inference.fitting import configuration
from crowdveil.inference.model import Context, Parameters

REPORTS_PER_BLOCK = 5_000_000
"""Few fat blocks: a task costs about 50 ms before it computes anything."""


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """A table that has been packed."""

    reports: SparkReports
    folder: str
    workers: DataFrame
    blocks: DataFrame
    context: Context


def fit_on_spark(
    method: Method,
    reports: SparkReports,
    output: str | Path,
    *,
    start: Estimate | None = None,
    workers_out: str | Path | None = None,
    work: str | Path | None = None,
    n_blocks: int | None = None,
    resume: bool = False,
) -> Estimate:
    """Estimates of every question, written to the Parquet folder `output`; the Estimate returned points there.

    `work` is a folder that the driver and all executors can reach; blocks, states and checkpoints live there. With
    `resume` a job whose driver died goes on from its last checkpoint in the same `work` folder. `start` is an earlier
    estimate that was made on Spark: workers are matched by their ids.
    """
    _check(method, resume, work)
    with tempfile.TemporaryDirectory(prefix="crowdveil-spark-") as temporary:
        folder = str(work or temporary)
        job = _packed(reports, folder, n_blocks, resume)
        rows = EstimateRows(reports.domain, method.numeric)
        if isinstance(method, IterativeMethod):
            done = _iterated(method, job, rows, str(output), start, resume)
        else:
            done = Run({}, (), 0, True, ())
            _one_pass(method, job, rows).write.mode("overwrite").parquet(str(output))
        if workers_out is not None:
            write_workers(job.workers, done.parameters, job.context.n_workers, str(workers_out))
        workers = _kept_workers(job, work)
        return _pointer(method, job, done, str(output), workers)


def _check(method: Method, resume: bool, work: object) -> None:
    if not isinstance(method, IterativeMethod) and not method.question_local:
        raise InputError(
            f"method {method.name} looks at all questions at once and cannot run on Spark",
            fix="use majority, weighted-mean, weighted-vote, one-coin, dawid-skene, channel-bp or channel-em",
        )
    if resume and work is None:
        raise InputError("a job can only be resumed in the folder it worked in", fix="name it with work=…")


def _packed(reports: SparkReports, folder: str, n_blocks: int | None, resume: bool) -> _Job:
    spark = reports.spark
    if resume and _written(reports, f"{folder}/packed") and _written(reports, f"{folder}/workers"):
        workers, blocks = spark.read.parquet(f"{folder}/workers"), spark.read.parquet(f"{folder}/packed")
    else:
        workers = numbered_workers(reports, folder)
        rows = coded(reports, workers)
        n_blocks = n_blocks or max(2, -(-reports.frame.count() // REPORTS_PER_BLOCK))
        blocks = pack_blocks(rows, folder, n_blocks)
    sizes = blocks.agg(F.sum(F.size("questions")), F.sum("n_reports")).first()
    assert sizes is not None
    context = Context(reports.domain, reports.channels, workers.count(), int(sizes[0]), int(sizes[1]))
    return _Job(reports, folder, workers, blocks, context)


def _written(reports: SparkReports, path: str) -> bool:
    """Whether an earlier driver finished writing there."""
    try:
        return bool(reports.spark.read.parquet(path).columns)
    except Exception as missing:
        if "PATH_NOT_FOUND" in str(missing) or "does not exist" in str(missing):
            return False
        raise


def _iterated(
    method: IterativeMethod, job: _Job, rows: EstimateRows, output: str, start: Estimate | None, resume: bool
) -> Run:
    reached = load_checkpoint(job.folder) if resume else None
    first, generation = reached or (_carried(start, job), 0)
    model = method.model(replace(job.context, start=first))
    session = SparkBlocks(model, job.reports.spark, job.folder, generation)
    if reached is None:
        session.begin(job.blocks, _gold_codes(method, job))
    done = run(model, session, max_iter=method.max_iter, tol=method.tol, accelerate=method.accelerate)
    session.finished(done.parameters, rows, rows.schema).write.mode("overwrite").parquet(output)
    return done


def _gold_codes(method: IterativeMethod, job: _Job) -> dict[Hashable, int]:
    gold: Mapping[Hashable, object] = getattr(method, "gold", {})
    return {question: job.context.domain.code(truth) for question, truth in gold.items()}


def _one_pass(method: Method, job: _Job, rows: EstimateRows) -> DataFrame:
    """A method that looks at one question at a time runs on each block by itself."""
    context = job.context

    def one(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for questions, payload in payloads(batches):
            packed = Packed.from_bytes(questions, payload)
            fitted = method.fit(as_reports(packed, context.n_workers, context.channels, context.domain))
            columns: dict[str, Any] = {name: getattr(fitted, name) for name in ("value", "confidence", "low", "high")}
            yield rows(questions, columns | {"posterior": fitted.posterior})

    return job.blocks.select("questions", "payload").mapInArrow(one, rows.schema)


def _carried(start: Estimate | None, job: _Job) -> Parameters:
    """An earlier estimate's parameters for the workers of this table; newcomers begin with the average."""
    if start is None or not start.parameters:
        return {}
    known = start.provenance.get("workers")
    if not isinstance(known, str):
        raise InputError("a warm start on Spark needs an estimate that was made on Spark in a work folder of its own")
    old = job.reports.spark.read.parquet(known).withColumnRenamed("code", "was")
    pairs = np.array([tuple(row) for row in job.workers.join(old, "worker").select("code", "was").collect()]).reshape(
        -1, 2
    )
    was = int(start.provenance["n_workers"])  # type: ignore[call-overload]
    return {name: _for_workers(value, pairs, was, job.context) for name, value in start.parameters.items()}


def _for_workers(value: Any, pairs: Any, n_before: int, context: Context) -> Any:
    """A parameter with one entry per worker, matched by id; any other as it was."""
    if value.ndim == 0 or len(value) != n_before or (value.ndim == 1 and n_before == context.domain.size):
        return value
    carried = np.repeat(value.mean(axis=0, keepdims=True), context.n_workers, axis=0)
    carried[pairs[:, 0]] = value[pairs[:, 1]]
    return carried


def _kept_workers(job: _Job, work: str | Path | None) -> str | None:
    return None if work is None else f"{job.folder}/workers"


def _pointer(method: Method, job: _Job, done: Run, output: str, workers: str | None) -> Estimate:
    """An estimate whose rows are in Parquet."""
    nothing = np.empty(0)
    return Estimate(
        method.name,
        job.context.domain,
        np.empty(0, dtype=object),
        nothing if method.numeric else np.empty(0, dtype=np.int32),
        nothing,
        nothing,
        nothing,
        iterations=done.iterations,
        converged=done.converged,
        trace=done.trace,
        warnings=done.warnings,
        provenance={
            "method": method.name,
            "parameters": configuration(method),
            "engine": "spark",
            "n_reports": job.context.n_reports,
            "n_questions": job.context.n_questions,
            "n_workers": job.context.n_workers,
            "channels": [channel.sha256 for channel in job.context.channels],
            "estimates": output,
            "workers": workers,
        },
        parameters=done.parameters,
    )
