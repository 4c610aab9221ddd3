"""Dawid–Skene: learn each worker's confusion together with the truths (Dawid & Skene 1979), through the channel."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import InputError
from crowdveil.estimate import Estimate
from crowdveil.inference.base import IterativeMethod
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.estimation import (
    align_parameters,
    build_estimate,
    fit_model,
    gold_codes,
    warm_start_parameters,
)
from crowdveil.inference.models.categorical_em import Precision, working_precision
from crowdveil.inference.models.confusion import ConfusionModel, Prior
from crowdveil.inference.observations.debiasing import CLASS_SMOOTHING, channel_noise, table_channels
from crowdveil.inference.observations.likelihood import build_emission
from crowdveil.inference.priors.crowd import votes_by_symbol
from crowdveil.inference.protocols import Closing, Columns, Context, Parameters, Rows, Statistics
from crowdveil.inference.uncertainty.information_floor import choice_judgement, choice_skills, skill_tally
from crowdveil.inference.uncertainty.temperature import posterior_power
from crowdveil.reports import Reports
from crowdveil.validation import AtLeastOne, NotNegative, Number, shown

Array = NDArray[Any]
MAX_ENTRIES = 1 << 28
PER_OPTION, PER_QUESTION = 14, 8
"""Answers per worker with every option, and per question, from which on confusions and truths need no crowd."""


def _choose_prior(context: Context) -> Literal["fitted", "reference"]:
    """The prior that suits a table: the crowd's where a worker's own answers are few or noisy."""
    # Where an option is rare, its row of a confusion has a few answers, however many a worker gave.
    rich = context.rarest >= PER_OPTION * max(context.n_workers, 1)
    return "reference" if rich and context.n_reports >= PER_QUESTION * context.n_questions else "fitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class DawidSkene(IterativeMethod):
    """EM for the truths, each worker's confusion P(answer | truth) and the classes' shares.

    Each row of a confusion has a Dirichlet prior. Where workers gave enough answers it is a "reference" prior of one
    answer, otherwise it is "fitted" to the crowd; `prior` "none" is maximum likelihood. `class_smoothing` are
    pseudo-questions per class. `gold` maps questions to truths that are known; `history` maps workers to counts,
    truth × answer, from earlier work. Both hold during the whole iteration, and ids that no report has are left aside.

    >>> from crowdveil import Answers, Choices, Reports
    >>> crowd = [("ada", "nynyny"), ("bob", "nynyny"), ("cy", "yyyyyy")]
    >>> rows = [(worker, f"q{n}", answer) for worker, answers in crowd for n, answer in enumerate(answers)]
    >>> estimate = DawidSkene().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("n", "y")))))
    >>> estimate.values()
    ['n', 'y', 'n', 'y', 'n', 'y']
    """

    name: ClassVar[str] = "dawid-skene"
    summary: ClassVar[str] = "each worker's confusion and the truths together, by EM through the channel"

    max_iter: AtLeastOne = 500
    tol: Number = 1e-8
    accelerate: bool = False  # type: ignore[misc]
    prior: Prior = "auto"
    class_smoothing: NotNegative = CLASS_SMOOTHING
    precision: Precision = "auto"
    gold: Mapping[Hashable, object] = field(default_factory=dict)
    history: Mapping[Hashable, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        IterativeMethod.__post_init__(self)
        for worker, counts in self.history.items():
            _earlier(worker, counts)

    def model(self, context: Context) -> ConfusionModel:
        n_options = context.domain.size
        if context.n_workers * n_options**2 > MAX_ENTRIES:
            raise InputError(
                f"a confusion for each of {context.n_workers} workers and {n_options} options is too large",
                fix="use one-coin or majority",
            )
        channels = table_channels(context.channels)
        prior, noise = _choose_prior(context) if self.prior == "auto" else self.prior, channel_noise(channels)
        return ConfusionModel(
            context=context,
            emission=build_emission(channels, n_options),
            precision=working_precision(self.precision, context.n_reports),
            prior=prior,
            noise=noise,
            # Free confusions can pass for lopsided classes, so the shares are held here by as many noisy questions as
            # make up for `class_smoothing` unprotected ones.
            class_prior=0.0 if prior == "none" else self.class_smoothing * noise,
            votes=votes_by_symbol(channels, n_options),
        )

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        model = self.model(table_context(reports, self._start(reports, start)))
        if self.history:
            known = {worker: code for code, worker in enumerate(reports.workers.tolist()) if worker in self.history}
            model = self.recalling(model, known)
        # A warm start is spared the steep part of the climb; what is left is the slow end, where leaps pay.
        done, columns = fit_model(self, model, reports, gold_codes(self.gold, reports), leap=model.context.warm)
        confusion, classes = _read_confusion(done.parameters, reports.domain.size)
        parameters = dict(done.parameters) | {"confusion": confusion, "classes": classes}
        return build_estimate(self, model, reports, done, columns, start, parameters=parameters)

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        return skill_tally(rows, columns, context)

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        right = np.einsum("wtt,t->w", *_read_confusion(parameters, context.domain.size))
        skills = choice_skills(right, tally, "the probability of a right answer")
        return Closing(skills, choice_judgement(tally, context, posterior_power=posterior_power(parameters)))

    def _start(self, reports: Reports, start: Estimate | None) -> Parameters:
        """An earlier estimate's parameters; a worker it did not know begins as the typical one."""
        known = warm_start_parameters(self, start, reports, *ConfusionModel.by_worker, *ConfusionModel.shared)
        if not known:
            return {}
        typical = {name: known[name].mean(axis=0) for name in ConfusionModel.by_worker}
        typical["skill"] = known["crowd"][0]
        carried = {name: align_parameters(start, name, reports, value) for name, value in typical.items()}
        return carried | {name: known[name] for name in ConfusionModel.shared}

    def recalling(self, model: ConfusionModel, codes: Mapping[Hashable, int]) -> ConfusionModel:
        """The model with the history of the workers that have these codes."""
        if not codes:
            return model
        n_options = model.emission.n_options
        counts = np.zeros((model.context.n_workers, model.emission.n_answers, n_options))
        for worker, code in codes.items():
            counts[code, :n_options] = _earlier(worker, self.history[worker], n_options).T
        return replace(model, history=counts)


def _earlier(worker: Hashable, counts: object, n_options: int | None = None) -> NDArray[np.float64]:
    """A worker's counts from earlier work, truth × answer, with a row for each of the options where they are known."""
    try:
        table = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        table = np.array(np.nan)
    side = n_options or (len(table) if table.ndim else 0)
    if table.shape != (side, side) or not ((table >= 0) & (table < np.inf)).all():
        size = f" of {n_options} × {n_options}" if n_options else ""
        raise InputError(
            f"the history of worker {worker!r} must be a table{size} of counts from 0 up, truth × answer;"
            f" got {shown(counts)}"
        )
    return table


def _read_confusion(parameters: Parameters, n_options: int) -> tuple[Array, Array]:
    """P(answer | truth), worker × truth × answer, and the shares of the classes."""
    response = np.exp(parameters["log_confusion"][:, :n_options].astype(np.float64))
    confusion = np.swapaxes(response / response.sum(axis=1, keepdims=True), 1, 2)
    return np.ascontiguousarray(confusion), np.exp(parameters["log_classes"])
