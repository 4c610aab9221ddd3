"""The model behind dawid-skene: a confusion for each worker under a prior, seen through the channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.kernels.layout import Layout, kernels
from crowdveil.inference.models.categorical_em import ChoiceModel
from crowdveil.inference.observations.likelihood import TINY
from crowdveil.inference.priors.crowd import CrowdPrior, coins, deviations, no_errors
from crowdveil.inference.protocols import Parameters, Statistics
from crowdveil.inference.uncertainty.parameter_variance import (
    coin_doubts,
    coin_variance,
    reports_per_answer,
    row_doubts,
    weakest,
)

Array = NDArray[Any]
Prior = Literal["auto", "fitted", "reference", "none"]
_PRIORS = ("crowd", "skill", "errors")
_MOST = 40.0
"""So small the logarithm of a chance becomes at most, where its inverse is needed."""
_LEAST = 1e-10
"""What a count is at least, for a symbol that a worker did use: crowd-kit's constant, so that the two agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionModel(ChoiceModel):
    """Parameters: `log_confusion` (worker × answer × truth), `seen` (worker × truth), `log_classes` and the priors.

    The priors are each worker's `skill` and the `crowd` (the numbers of a CrowdPrior).
    """

    prior: Literal["fitted", "reference", "none"]
    noise: float
    class_prior: float
    votes: Array
    history: Array | None = None

    by_worker: ClassVar[tuple[str, ...]] = ("log_confusion", "seen", "skill")
    shared: ClassVar[tuple[str, ...]] = ("log_classes", "crowd", "errors")

    @property
    def fitted(self) -> bool:
        return self.prior == "fitted"

    def init(self) -> Parameters:
        start = self.context.start
        if start and not self.fitted:
            return self.project(start)
        if not self.fitted and self.emission.plain and self.history is None:
            # The shares of the votes are enough to begin with.
            return {}
        # Shares of votes look surer than they are: begin with everybody as the typical worker.
        crowd = CrowdPrior.begin(start, with_empty=self.emission.with_empty)
        skill = np.full(self.context.n_workers, crowd.accuracy)
        errors = no_errors(self.emission.n_options)
        counts = crowd.counts(skill, errors, self.emission)
        return self._parameters(counts, np.ones(self.emission.n_options)) | _priors(crowd, skill, errors)

    def logs(self, parameters: Parameters, layout: Layout) -> Array:
        table = parameters["log_confusion"]
        if self.emission.plain and layout.cells is None:
            flat: Array = table.reshape(-1, self.emission.n_options)
            return flat
        return self.emission.logs(np.exp(table.astype(np.float64)), layout, self.precision)

    def collect(self, counts: Array, parameters: Parameters, layout: Layout) -> Statistics:
        shape = (self.context.n_workers, self.emission.n_answers, self.emission.n_options)
        if self.emission.plain and layout.cells is None:
            return {"counts": counts.reshape(shape)}
        if not parameters:
            confusion = np.full(shape, 1.0 / self.emission.n_answers)
        else:
            confusion = np.exp(parameters["log_confusion"].astype(np.float64))
        return {"counts": self.emission.answers(counts, confusion, layout)}

    def more(self, counts: Array, posterior: Array, parameters: Parameters, layout: Layout) -> Statistics:
        """Before the strength of the prior is fitted: how each worker differs from the crowd."""
        if not self.fitted or not CrowdPrior.of(parameters["crowd"]).due:
            return {}
        doubled = np.zeros_like(counts)
        kernels().sweep_counts(layout, posterior * posterior, doubled)
        mean = coins(parameters["skill"], parameters["errors"])
        return deviations(counts, doubled, self._given(parameters), mean, self.votes, layout)

    def _given(self, parameters: Parameters) -> Array:
        """The share of questions that each worker answers."""
        given: Array = np.exp(parameters["log_confusion"][:, : self.emission.n_options, 0].astype(np.float64)).sum(
            axis=1
        )
        return given

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        if not parameters or (self.fitted and not CrowdPrior.of(parameters["crowd"]).settled):
            return float("nan")
        logs, penalty = parameters["log_confusion"], 0.0
        if self._reference:
            sums = kernels().column_sums(logs.reshape(len(logs), logs.shape[1] * logs.shape[2]))
            penalty += float(sums.sum()) * self._reference
        if self.fitted:
            crowd = CrowdPrior.of(parameters["crowd"])
            prior = crowd.counts(parameters["skill"], parameters["errors"], self.emission)
            penalty += float(np.einsum("wat,wat->", logs, prior, dtype=np.float64))
        if self.history is not None:
            penalty += float((logs * self.history).sum(dtype=np.float64))
        penalty += self.class_prior * float(parameters["log_classes"].sum())
        return float(statistics["log_likelihood"]) + penalty

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        counts, classes = statistics["counts"], statistics["classes"] + self.class_prior
        if self.prior == "none":
            # Without a prior a symbol that a worker never used stays impossible for that worker.
            counts = np.where(counts.sum(axis=2, keepdims=True) > 0, np.maximum(counts, _LEAST), 0.0)
        if self.history is not None:
            counts = counts + self.history
        priors = {name: parameters[name] for name in _PRIORS} if parameters else _none(counts)
        crowd = CrowdPrior.of(priors["crowd"])
        if self.fitted:
            if not crowd.settled:
                priors = self._fitted(crowd, counts, statistics, priors)
                crowd = CrowdPrior.of(priors["crowd"])
            counts = counts + crowd.counts(priors["skill"], priors["errors"], self.emission)
            classes = classes if crowd.apart else np.ones_like(classes)
        if self.emission.with_empty:
            return self._parameters(counts.astype(np.float64) + self._reference, classes) | priors
        logs = np.empty(counts.shape, dtype=self.precision)
        seen = np.empty((len(counts), counts.shape[2]))
        kernels().log_shares(counts, np.full(counts.shape[1:], self._reference), logs, seen)
        return {"log_confusion": logs, "seen": seen, "log_classes": _log_classes(classes)} | priors

    @property
    def _reference(self) -> float:
        """Perks' prior (1947): one answer to each truth, spread evenly over the options."""
        return 1.0 / self.emission.n_answers if self.prior == "reference" else 0.0

    def _fitted(self, crowd: CrowdPrior, counts: Array, statistics: Statistics, priors: Parameters) -> dict[str, Array]:
        given = counts[:, : self.emission.n_options].astype(np.float64)
        right, answers = np.einsum("wtt->w", given), given.sum(axis=(1, 2))
        empty = float(counts[:, self.emission.n_options :].sum(dtype=np.float64))
        crowd = crowd.fitted(statistics, priors["skill"], priors["errors"]).next(right, answers, empty, self.noise)
        return _priors(crowd, crowd.skills(right, answers), crowd.errors(given, self.noise))

    def project(self, parameters: Parameters) -> Parameters:
        logs = parameters["log_confusion"].astype(np.float64)
        classes = parameters["log_classes"].astype(np.float64)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        seen = np.maximum(parameters["seen"], 0.0)[:, None]
        counts = shares / shares.sum(axis=1, keepdims=True) * seen
        priors = {name: parameters[name] for name in _PRIORS}
        return self._parameters(counts, np.exp(classes - classes.max())) | priors

    @property
    def tempers(self) -> bool:
        return self.prior != "none"

    def own(self, parameters: Parameters, layout: Layout) -> tuple[Array, Array] | None:
        """The share of a sure report in its own chance and in its worker's counts (Emission.own)."""
        if self.prior == "none":
            return None
        seen = np.maximum(parameters["seen"], 1e-9)
        if self.emission.plain and layout.cells is None:
            # The same in working precision, because these tables are as large as a crowd.
            share = np.broadcast_to((1 / seen).astype(self.precision)[:, None], parameters["log_confusion"].shape)
            own = np.exp(np.minimum(-parameters["log_confusion"], _MOST)).astype(self.precision, copy=False)
            own *= share
            return own.reshape(-1, self.emission.n_options), share.reshape(-1, self.emission.n_options)
        confusion = np.exp(parameters["log_confusion"].astype(np.float64))
        found = self.emission.own(confusion, seen, layout)
        return found[0].astype(self.precision), found[1].astype(self.precision)

    def doubt(self, parameters: Parameters, layout: Layout) -> Array:
        """A chance p seen n times has the variance p · (1 − p) / (n + 1), and its logarithm (1 − p) / (p · (n + 1))."""
        if self.emission.plain and layout.cells is None and not self.fitted:
            # What a worker never does is not looked up; it is only kept from overflowing.
            table = np.exp(np.minimum(-parameters["log_confusion"], _MOST)).astype(self.precision)
            table -= 1
            table /= (parameters["seen"][:, None, :] + 1).astype(self.precision)
            flat: Array = table.reshape(-1, self.emission.n_options)
            return flat
        confusion = np.exp(parameters["log_confusion"].astype(np.float64))
        per_answer = reports_per_answer(self.noise, parameters)
        if not self.fitted:
            reports = np.maximum(parameters["seen"] - float(self.prior == "reference"), 0.0)
            answers = reports / per_answer + float(self.prior == "reference")
            return row_doubts(self.emission, confusion, answers, layout).astype(self.precision)
        return self._fitted_doubt(confusion, per_answer, parameters, layout).astype(self.precision)

    def _fitted_doubt(self, confusion: Array, per_answer: float, parameters: Parameters, layout: Layout) -> Array:
        """A row is known by its reports and by the worker's skill, as far as the row follows that."""
        crowd, skill = CrowdPrior.of(parameters["crowd"]), parameters["skill"]
        reports = np.maximum(parameters["seen"] * self._given(parameters)[:, None] - crowd.rows, 0.0)
        strength = weakest(crowd.rows, reports, per_answer)
        answers = strength + reports / per_answer
        variance = coin_variance(skill, crowd.skill, reports.sum(axis=1), per_answer)
        by_truth = variance[:, None] * (strength / answers) ** 2
        doubts = coin_doubts(self.emission, confusion, parameters["errors"], by_truth, layout)
        return doubts + row_doubts(self.emission, confusion, answers, layout)

    def _parameters(self, counts: Array, classes: Array) -> dict[str, Array]:
        total = counts.sum(axis=1, keepdims=True)
        even = 1.0 / counts.shape[1]
        confusion = np.divide(counts, total, out=np.full_like(counts, even), where=total > 0)
        if self.emission.with_empty:
            confusion = _same_participation(confusion, counts)
        return {
            "log_confusion": np.log(np.maximum(confusion, TINY)).astype(self.precision),
            "log_classes": _log_classes(classes),
            "seen": total[:, 0],
        }


def _priors(crowd: CrowdPrior, skill: Array, errors: Array) -> dict[str, Array]:
    return {"crowd": crowd.array, "skill": skill, "errors": errors}


def _none(counts: Array) -> dict[str, Array]:
    """Where there is no prior."""
    return _priors(CrowdPrior(), np.zeros(len(counts)), no_errors(counts.shape[2]))


def _log_classes(counts: Array) -> Array:
    share = np.maximum(counts / max(counts.sum(), TINY), _LEAST)
    logs: Array = np.log(share / share.sum())
    return logs


def _same_participation(confusion: Array, counts: Array) -> Array:
    """Whether a question is answered does not depend on its truth: one share of ∅ per worker."""
    empty = counts[:, -1].sum(axis=1) / np.maximum(counts.sum(axis=(1, 2)), TINY)
    given = counts[:, :-1]
    total = given.sum(axis=1, keepdims=True)
    shares = np.divide(given, total, out=np.full_like(given, 1.0 / given.shape[1]), where=total > 0)
    confusion = np.empty_like(counts)
    confusion[:, :-1] = shares * (1 - empty)[:, None, None]
    confusion[:, -1] = empty[:, None]
    return confusion
