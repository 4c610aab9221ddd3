"""From a model to a finished estimate: run the driver, gather the columns, note where everything came from."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import Domain
from crowdveil.errors import DomainError
from crowdveil.estimate import Estimate
from crowdveil.inference.base import IterativeMethod, Method
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.engine.em import Run, run
from crowdveil.inference.observations.numeric import count_by_channel
from crowdveil.inference.protocols import Columns, Judged, Model, Parameters, lasting, with_prior
from crowdveil.reports import Reports

Array = NDArray[Any]
_JUDGED = ("value", "confidence", "low", "high", "posterior")


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
    columns = session.finish(done.parameters)
    return replace(done, parameters=lasting(model, done.parameters)), columns


def build_estimate(
    method: IterativeMethod,
    model: Model,
    reports: Reports,
    done: Run,
    columns: Columns,
    start: Estimate | None,
    *,
    parameters: Parameters | None = None,
) -> Estimate:
    """The estimate of an iterative method; `parameters` where it has more to say than the run found."""
    known = done.parameters if parameters is None else parameters
    estimate = assemble_estimate(
        method,
        reports,
        columns,
        iterations=done.iterations,
        converged=done.converged,
        objective=model.objective,
        trace=done.trace,
        warnings=(
            *done.warnings,
            *_warm_start_warning(method, model, reports, start),
            *_unmatched_id_warning(method, reports),
        ),
        parameters=known,
    )
    return attach_skills(method, estimate, reports, columns, known)


def attach_skills(
    method: Method, estimate: Estimate, reports: Reports, columns: Columns, parameters: Parameters
) -> Estimate:
    """The estimate with the workers' skills, the floor, and a warning where there is reason for one."""
    context = table_context(reports)
    closing = method.closing(parameters, method.tally(reports, columns, context), context)
    skills = None if closing.skills is None else replace(closing.skills, workers=reports.workers)
    judgement = closing.judgement
    return replace(
        estimate,
        skills=skills,
        floor=judgement.floor,
        warnings=(*estimate.warnings, *judgement.warnings),
        provenance={**estimate.provenance, **judgement.facts},
    )


def attach_floor(
    estimate: Estimate,
    model: Judged,
    parameters: Parameters,
    reports: Reports,
    gold: NDArray[np.int32] | None = None,
) -> Estimate:
    """The estimate with what the model says about it; the prior, labelled as such, where reports cannot tell more."""
    by_channel = np.bincount(reports.channel, minlength=len(reports.channels))
    judgement = model.judgement(parameters, by_channel)
    found: Columns = {name: value for name in _JUDGED if (value := getattr(estimate, name)) is not None}
    counts = count_by_channel(reports, len(reports.channels))
    columns: Any = with_prior(model, judgement.floor, found, counts, parameters, gold)
    return replace(
        estimate,
        floor=judgement.floor,
        warnings=(*estimate.warnings, *judgement.warnings),
        provenance={**estimate.provenance, **judgement.facts},
        **columns,
    )


def from_columns(method: Method, reports: Reports, columns: Columns) -> Estimate:
    """The estimate of a method that needs no iteration."""
    return attach_skills(method, assemble_estimate(method, reports, columns), reports, columns, {})


def assemble_estimate(method: Method, reports: Reports, columns: Columns, **known: Any) -> Estimate:
    """The columns as an estimate, with what else is `known` of it."""
    return Estimate(
        method.name,
        reports.domain,
        reports.questions,
        columns["value"],
        columns["confidence"],
        columns["low"],
        columns["high"],
        columns.get("posterior"),
        provenance=provenance(method, reports),
        **known,
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
        "posterior": meaning(method),
    }


def meaning(method: Method) -> str | None:
    """What the numbers beside the options are; None where there are none."""
    if method.numeric:
        return None
    return "shares of votes, not probabilities" if method.shares else "probabilities"


def configuration(method: Method) -> dict[str, object]:
    """The method's settings, without the engine and without tables of gold or history."""
    configured = {each.name: getattr(method, each.name) for each in fields(method)}  # type: ignore[arg-type]
    return {name: value for name, value in configured.items() if name != "engine" and not isinstance(value, Mapping)}


def warm_start_parameters(method: Method, start: Estimate | None, reports: Reports, *names: str) -> Parameters:
    """The parameters of an earlier estimate that this method can go on from; none where it cannot."""
    if start is None or start.skills is None or (start.method, start.domain) != (method.name, reports.domain):
        return {}
    return start.parameters if len(start.skills.workers) and set(names) <= set(start.parameters) else {}


def _warm_start_warning(method: Method, model: Model, reports: Reports, start: Estimate | None) -> tuple[str, ...]:
    """A warning where there was a start and the method could not go on from it."""
    if start is None or model.context.warm:
        return ()
    if start.method != method.name:
        reason = f"an estimate of {start.method}"
    elif start.domain != reports.domain:
        reason = "about other options or levels"
    else:
        reason = "not one that these reports can go on from"
    return (f"the start is {reason}, so {method.name} began anew",)


def align_parameters(start: Estimate | None, name: str, reports: Reports, default: Array | float) -> Array:
    """The parameter of that name in a `known_start` for these workers; `default` for those it did not meet."""
    assert start is not None
    assert start.skills is not None
    index_by_worker = {worker: index for index, worker in enumerate(start.skills.workers.tolist())}
    start_index = np.array([index_by_worker.get(worker, -1) for worker in reports.workers.tolist()], dtype=np.int64)
    carried: Array = np.broadcast_to(default, (len(start_index), *np.shape(default))).copy()
    carried[start_index >= 0] = start.parameters[name][start_index[start_index >= 0]]
    return carried


def gold_codes(gold: Mapping[Hashable, object] | None, reports: Reports) -> NDArray[np.int32] | None:
    """The known truths as codes, in the order of the questions; -1 where there is none."""
    if not gold:
        return None
    asked = reports.questions.tolist()
    return np.array([known_truth(question, gold.get(question), reports.domain) for question in asked], dtype=np.int32)


def known_truth(question: Hashable, truth: object, domain: Domain) -> int:
    """The code of a truth that is known; refused where nobody could have answered so."""
    try:
        return domain.code(truth)
    except DomainError as error:
        raise DomainError(
            f"the truth of question {question!r} cannot be used: {error.problem}", fix=error.fix
        ) from None


def _unmatched_id_warning(method: Method, reports: Reports) -> tuple[str, ...]:
    """A warning where known truths, or earlier work, are about nobody here: mostly ids that are spelled otherwise."""
    known = {"gold": ("questions", reports.questions), "history": ("workers", reports.workers)}
    return tuple(
        f"{name} names none of the {what}; check that the ids agree"
        for name, (what, ids) in known.items()
        if (values_by_id := getattr(method, name, None)) and not any(each in values_by_id for each in ids.tolist())
    )
