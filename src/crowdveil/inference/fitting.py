"""From a model to a finished estimate: run the driver, gather the columns, note where everything came from."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.estimate import Estimate, Skills
from crowdveil.inference.base import IterativeMethod, Method
from crowdveil.inference.counting import summed
from crowdveil.inference.driver import Run, run
from crowdveil.inference.model import Columns, Judged, Model, Parameters
from crowdveil.inference.votes import channel_worth
from crowdveil.reports import Reports

Array = NDArray[Any]


def fit_model(
    method: IterativeMethod,
    model: Model,
    reports: Reports,
    gold: NDArray[np.int32] | None = None,
    *,
    leap: bool = False,
) -> tuple[Run, Columns]:
    """Iterate the model where the method's engine keeps the blocks; `leap` accelerates even if the method does not."""
    session = method.engine.open(model, reports, gold)
    done = run(model, session, max_iter=method.max_iter, tol=method.tol, accelerate=method.accelerate or leap)
    return done, session.finish(done.parameters)


def finished(
    method: IterativeMethod,
    model: Model,
    reports: Reports,
    done: Run,
    columns: Columns,
    *,
    skills: Skills,
    parameters: Mapping[str, Array],
    warnings: tuple[str, ...] = (),
) -> Estimate:
    """The estimate of an iterative method."""
    return Estimate(
        method.name,
        reports.domain,
        reports.questions,
        columns["value"],
        columns["confidence"],
        columns["low"],
        columns["high"],
        columns.get("posterior"),
        skills,
        iterations=done.iterations,
        converged=done.converged,
        objective=model.objective,
        trace=done.trace,
        warnings=(*warnings, *done.warnings),
        provenance=provenance(method, reports),
        parameters=parameters,
    )


def judged(estimate: Estimate, model: Judged, parameters: Parameters, reports: Reports) -> Estimate:
    """The estimate with what the model says about it; the prior, labelled as such, where reports cannot tell more."""
    by_channel = np.bincount(reports.channel, minlength=len(reports.channels))
    verdict = model.verdict(parameters, by_channel, len(np.unique(reports.question)))
    columns: dict[str, Any] = {} if verdict.informative else model.prior(estimate.answered, parameters)
    return replace(
        estimate,
        floor=verdict.floor,
        warnings=(*estimate.warnings, *verdict.warnings),
        provenance={**estimate.provenance, **verdict.facts},
        **columns,
    )


def from_columns(method: Method, reports: Reports, columns: Columns, warnings: tuple[str, ...] = ()) -> Estimate:
    """The estimate of a method that needs no iteration."""
    return Estimate(
        method.name,
        reports.domain,
        reports.questions,
        columns["value"],
        columns["confidence"],
        columns["low"],
        columns["high"],
        columns.get("posterior"),
        warnings=warnings,
        provenance=provenance(method, reports),
    )


def provenance(method: Method, reports: Reports) -> dict[str, object]:
    """What the estimate was made from, and how."""
    return {
        "method": method.name,
        "parameters": configuration(method),
        "engine": getattr(getattr(method, "engine", None), "name", "local"),
        "n_reports": len(reports),
        "n_questions": reports.n_questions,
        "n_workers": reports.n_workers,
        "channels": [channel.sha256 for channel in reports.channels],
    }


def configuration(method: Method) -> dict[str, object]:
    """The method's settings, without the engine and without tables of gold or history."""
    configured = {each.name: getattr(method, each.name) for each in fields(method)}  # type: ignore[arg-type]
    return {name: value for name, value in configured.items() if name != "engine" and not isinstance(value, Mapping)}


def worker_worth(reports: Reports, channels: tuple[Channel, ...], posterior: Array) -> NDArray[np.float64]:
    """How many unprotected answers to questions with known truths each worker's reports are worth.

    Where the truth has only the probability p, an answer tells ((k·p − 1) / (k − 1))² as much about a skill.
    """
    n_options = posterior.shape[1]
    sure = np.square((n_options * posterior.max(axis=1, initial=0.0) - 1) / max(n_options - 1, 1))
    worth = np.array([channel_worth(channel) for channel in channels])
    return summed(
        reports.worker, lambda rows: worth[reports.channel[rows]] * sure[reports.question[rows]], reports.n_workers
    )


def carried_over(start: Estimate | None, name: str, reports: Reports, default: Array) -> Array | None:
    """An earlier estimate's parameter of that name for these workers; `default` for those it did not know."""
    if start is None or start.skills is None or name not in start.parameters:
        return None
    place = {worker: index for index, worker in enumerate(start.skills.workers.tolist())}
    found = np.array([place.get(worker, -1) for worker in reports.workers.tolist()], dtype=np.int64)
    values = start.parameters[name]
    if values.shape[1:] != default.shape:
        return None
    carried = np.broadcast_to(default, (len(found), *default.shape)).copy()
    carried[found >= 0] = values[found[found >= 0]]
    return carried


def gold_codes(gold: Mapping[Hashable, object] | None, reports: Reports) -> NDArray[np.int32] | None:
    """The known truths as codes, in the order of the questions; -1 where there is none."""
    if not gold:
        return None
    truths = [gold.get(question) for question in reports.questions.tolist()]
    return reports.domain.encode(truths)
