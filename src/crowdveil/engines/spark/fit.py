"""Fit a method on Spark: pack, iterate with the shared driver, and leave the estimates in Parquet."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from crowdveil.engines.packing import as_reports
from crowdveil.engines.spark.job import Job, identity_of, packed_job
from crowdveil.engines.spark.notes import Notes, notes_in
from crowdveil.engines.spark.results import EstimateRows, write_workers
from crowdveil.engines.spark.rows import blocks_in
from crowdveil.engines.spark.session import SparkBlocks, reached_in
from crowdveil.engines.spark.table import SparkReports
from crowdveil.engines.spark.warm import SparkStart, carried, keep_start
from crowdveil.errors import InputError
from crowdveil.estimate import Estimate
from crowdveil.inference import METHODS
from crowdveil.inference.base import Method, Modelled
from crowdveil.inference.driver import Run, run
from crowdveil.inference.fitting import configuration
from crowdveil.inference.model import Judged, Verdict


def fit_on_spark(
    method: Method,
    reports: SparkReports,
    output: str | Path,
    *,
    start: SparkStart | None = None,
    start_out: str | Path | None = None,
    workers_out: str | Path | None = None,
    work: str | Path | None = None,
    n_blocks: int | None = None,
    resume: bool = False,
) -> Estimate:
    """Estimates of every question, written to the Parquet folder `output`; the Estimate returned points there.

    `work` is a folder that the driver and all executors can reach; blocks, states and checkpoints live there. With
    `resume` a job whose driver died goes on from its last checkpoint in the same `work` folder, if it is the same
    job. `start` is an earlier fit that was kept with `start_out`: workers are matched by their ids.
    """
    _check(method, resume, work)
    with tempfile.TemporaryDirectory(prefix="crowdveil-spark-") as temporary:
        folder = str(work or temporary)
        notes = notes_in(folder, reports.spark)
        job = packed_job(reports, folder, notes, identity_of(method, reports), n_blocks=n_blocks, resume=resume)
        rows = EstimateRows(reports.domain, method.numeric)
        if isinstance(method, Modelled):
            done, verdict = _iterated(method, job, notes, rows, str(output), start)
        else:
            done, verdict = Run({}, (), 0, True, ()), Verdict()
            _one_pass(method, job, rows).write.mode("overwrite").parquet(str(output))
        if workers_out is not None:
            write_workers(job.workers, done.parameters, job.sizes.n_workers, str(workers_out))
        if start_out is not None and done.parameters:
            keep_start(start_out, method, job, done.parameters)
        return _pointer(method, job, done, verdict, str(output))


def methods_on_spark() -> list[str]:
    """The methods that can run here: one question at a time, or through a model."""
    return [name for name, kind in METHODS.items() if kind.question_local or hasattr(kind, "model")]


def _check(method: Method, resume: bool, work: object) -> None:
    if method.name not in methods_on_spark():
        raise InputError(
            f"method {method.name} looks at the whole table at once and cannot run on Spark",
            fix=f"use {', '.join(methods_on_spark())}",
        )
    if getattr(method, "history", None):
        raise InputError("a history of workers cannot be used on Spark", fix="use a warm start instead")
    if resume and work is None:
        raise InputError("a job can only be resumed in the folder it worked in", fix="name it with --work")


def _iterated(
    method: Modelled, job: Job, notes: Notes, rows: EstimateRows, output: str, start: SparkStart | None
) -> tuple[Run, Verdict]:
    model = method.model(job.context)
    if start is not None:
        assert isinstance(method, Method)
        model = method.model(replace(job.context, start=carried(start, method, model, job)))
    reached = reached_in(notes) if job.resumed else None
    session = SparkBlocks(model, job.reports.spark, job.folder, notes, job.sizes.n_blocks)
    if reached is None:
        session.begin(job.blocks, _gold_codes(method, job))
    else:
        session.passes, session.generation = reached.passes, reached.generation
    done = run(
        model,
        session,
        max_iter=max(method.max_iter - session.passes, 1),
        tol=method.tol,
        accelerate=method.accelerate or start is not None,
        first=None if reached is None else reached.parameters,
    )
    verdict = Verdict()
    if isinstance(model, Judged):
        verdict = model.verdict(done.parameters, job.by_channel, job.sizes.n_questions)
    results = session.results(done.parameters, rows, informative=verdict.informative)
    results.write.mode("overwrite").parquet(output)
    return replace(done, iterations=session.passes), verdict


def _gold_codes(method: object, job: Job) -> dict[Hashable, int]:
    gold: Mapping[Hashable, object] = getattr(method, "gold", {})
    return {question: job.reports.domain.code(truth) for question, truth in gold.items()}


def _one_pass(method: Method, job: Job, rows: EstimateRows) -> DataFrame:
    """A method that looks at one question at a time runs on each block by itself."""
    context = job.context

    def one(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for packed in blocks_in(batches):
            fitted = method.fit(as_reports(packed, context.n_workers, context.channels, context.domain))
            columns: dict[str, Any] = {name: getattr(fitted, name) for name in ("value", "confidence", "low", "high")}
            yield rows(packed.questions, columns | {"posterior": fitted.posterior})

    return job.blocks.mapInArrow(one, rows.schema)


def _pointer(method: Method, job: Job, done: Run, verdict: Verdict, output: str) -> Estimate:
    """An estimate whose rows are in Parquet."""
    nothing = np.empty(0)
    return Estimate(
        method.name,
        job.reports.domain,
        np.empty(0, dtype=object),
        nothing if method.numeric else np.empty(0, dtype=np.int32),
        nothing,
        nothing,
        nothing,
        iterations=done.iterations,
        converged=done.converged,
        trace=done.trace,
        warnings=(*done.warnings, *verdict.warnings),
        floor=verdict.floor,
        provenance={
            "method": method.name,
            "parameters": configuration(method),
            "engine": "spark",
            "n_reports": sum(job.sizes.by_channel),
            "n_questions": job.sizes.n_questions,
            "n_workers": job.sizes.n_workers,
            "channels": [channel.sha256 for channel in job.reports.channels],
            "estimates": output,
            **verdict.facts,
        },
        parameters=done.parameters,
    )
