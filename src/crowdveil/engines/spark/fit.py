"""Fit a method on Spark: pack, iterate with the shared driver, and leave the estimates in Parquet."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from crowdveil.engines.spark.connection import one_task_per_file
from crowdveil.engines.spark.job import Job, hashed, pack_on_spark
from crowdveil.engines.spark.passes import SparkBlocks
from crowdveil.engines.spark.read import SparkReports, codes_of, median_per_worker
from crowdveil.engines.spark.results import EstimateRows, write_workers
from crowdveil.engines.spark.warm_start import SparkStart, carried, keep_start
from crowdveil.errors import InputError
from crowdveil.estimate import Estimate, Skills
from crowdveil.inference import METHODS, Auto
from crowdveil.inference.base import IterativeMethod, Method, Modelled, Recalling
from crowdveil.inference.engine.em import Run, run
from crowdveil.inference.estimation import configuration, known_truth, meaning
from crowdveil.inference.methods.auto import choose, explained
from crowdveil.inference.protocols import Closing, Judged, Judgement, Model, lasting


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
    if resume and work is None:
        raise InputError("a job can only be resumed in the folder it worked in", fix="name that folder")
    _check(method)
    with tempfile.TemporaryDirectory(prefix="crowdveil-spark-") as temporary:
        job = pack_on_spark(reports, work or temporary, n_blocks=n_blocks, resume=resume)
        return fit_packed(method, job, output, start=start, start_out=start_out, workers_out=workers_out)


def fit_packed(
    method: Method,
    job: Job,
    output: str | Path,
    *,
    start: SparkStart | None = None,
    start_out: str | Path | None = None,
    workers_out: str | Path | None = None,
) -> Estimate:
    """The same for a table that has been packed already: several methods can look at one."""
    _check(method)
    with one_task_per_file(job.reports.spark):
        return _fitted(method, job, str(output), start, start_out, workers_out)


def _fitted(
    method: Method,
    job: Job,
    output: str,
    start: SparkStart | None,
    start_out: str | Path | None,
    workers_out: str | Path | None,
) -> Estimate:
    chosen, why = _resolved(method, job)
    model = _model(chosen, job, start)
    identity = {"method": chosen.name, "settings": _settings(chosen)}
    session = SparkBlocks(model, job, identity, keeps=chosen.tallies)
    done = _iterated(chosen, session, leap=start is not None)
    judgement = Judgement()
    if isinstance(model, Judged):
        judgement = model.judgement(done.parameters, job.by_channel)
    rows = EstimateRows(job.reports.domain, chosen.numeric)
    results = session.results(done.parameters, rows, judgement.floor)
    results.write.mode("overwrite").parquet(output)
    tally = session.tally(chosen, done.parameters) if chosen.tallies else {}
    done = replace(done, parameters=lasting(model, done.parameters))
    closing = chosen.closing(done.parameters, tally, job.context)
    if not isinstance(chosen, IterativeMethod):
        # Passes that size up the crowd are no iterations, and nothing that a later fit could go on from.
        done = Run({}, (), 0, True, ())
    if workers_out is not None:
        write_workers(job.workers, _skills(chosen, closing), str(workers_out))
    if start_out is not None and done.parameters:
        keep_start(start_out, chosen, job, done.parameters)
    estimate = _pointer(chosen, session, done, (judgement, closing.judgement), output)
    return estimate if why is None else explained(estimate, why)


def methods_on_spark() -> list[str]:
    """The methods that can run here: those that have a model, and the one that chooses among them."""
    return [name for name, kind in METHODS.items() if kind is Auto or hasattr(kind, "model")]


def _check(method: Method) -> None:
    if not isinstance(method, Auto | Modelled):
        raise InputError(
            f"method {method.name} looks at the whole table at once and cannot run on Spark",
            fix=f"use {', '.join(methods_on_spark())}",
        )


def _resolved(method: Method, job: Job) -> tuple[Method, str | None]:
    """The method that runs, and why it was chosen if it was."""
    if isinstance(method, Auto):
        return choose(job.context, lambda: median_per_worker(job.reports))
    return method, None


def _model(method: Method, job: Job, start: SparkStart | None) -> Model:
    assert isinstance(method, Modelled)
    model = method.model(job.context)
    if start is not None:
        model = method.model(replace(job.context, start=carried(start, method, model, job)))
    return method.recalling(model, codes_of(job.workers, method.history)) if isinstance(method, Recalling) else model


def _iterated(method: Method, session: SparkBlocks, *, leap: bool) -> Run:
    """Run the shared driver over the blocks, from the last checkpoint if there is one."""
    assert isinstance(method, Modelled)
    if not method.max_iter:
        return Run({}, (), 0, True, ())
    first = session.go_on()
    if first is None:
        session.begin(_gold_codes(method, session.job))
    done = run(
        session.model,
        session,
        max_iter=max(method.max_iter - session.passes, 1),
        tol=method.tol,
        accelerate=method.accelerate or leap,
        first=first,
    )
    return replace(done, iterations=session.passes)


def _settings(method: Method) -> str:
    told = {name: sorted(map(str, getattr(method, name, {}).items())) for name in ("gold", "history")}
    return hashed(configuration(method) | told)


def _gold_codes(method: object, job: Job) -> dict[Hashable, int]:
    gold: Mapping[Hashable, object] = getattr(method, "gold", {})
    return {question: known_truth(question, truth, job.reports.domain) for question, truth in gold.items()}


def _skills(method: Method, closing: Closing) -> Skills:
    if closing.skills is None:
        raise InputError(f"method {method.name} learns no skills", fix="do not ask for them")
    return closing.skills


def _pointer(
    method: Method, session: SparkBlocks, done: Run, judgements: tuple[Judgement, Judgement], output: str
) -> Estimate:
    """An estimate whose rows are in Parquet."""
    job, nothing = session.job, np.empty(0)
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
        objective=session.model.objective,
        trace=done.trace,
        warnings=(*done.warnings, *(warning for judgement in judgements for warning in judgement.warnings)),
        floor=next((judgement.floor for judgement in judgements if judgement.floor), None),
        provenance={
            "method": method.name,
            "parameters": configuration(method),
            "engine": "spark",
            "n_reports": sum(job.sizes.by_channel),
            "n_questions": job.sizes.n_questions,
            "n_workers": job.sizes.n_workers,
            "channels": [channel.sha256 for channel in job.reports.channels],
            "posterior": meaning(method),
            "estimates": output,
            **judgements[0].facts,
            **judgements[1].facts,
        },
        parameters=done.parameters,
    )
