"""Dawid–Skene: learn each worker's confusion together with the truths (Dawid & Skene 1979), through the channel."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import InputError
from crowdveil.estimate import Estimate
from crowdveil.inference.base import IterativeMethod
from crowdveil.inference.blocks import context_of
from crowdveil.inference.choice_model import ChoiceModel, Precision, working_precision
from crowdveil.inference.emission import TINY, Emission, emission_of
from crowdveil.inference.fitting import carried_over, finished, fit_model, gold_codes
from crowdveil.inference.floors import choice_skills, choice_verdict, skill_tally
from crowdveil.inference.layout import Layout, kernels
from crowdveil.inference.model import Closing, Columns, Context, Parameters, Rows, Statistics
from crowdveil.inference.votes import class_pull, noise_of, table_channels
from crowdveil.reports import Reports

Array = NDArray[Any]
MAX_ENTRIES = 1 << 28
_LEAST = 1e-10
"""What a count is at least, for a symbol that a worker did use: crowd-kit's constant, so that the two agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DawidSkeneModel(ChoiceModel):
    """Parameters: `log_confusion` (worker × answer × truth), `log_classes`, `seen` (counts, worker × truth)."""

    prior: Array
    class_prior: float
    history: Array | None = None

    by_worker: ClassVar[tuple[str, ...]] = ("log_confusion", "seen")

    def init(self) -> Parameters:
        if self.context.warm:
            return self.project(self.context.start)
        if self.emission.plain and self.history is None:
            return {}
        # Under noise, shares of votes look far surer than they are: begin with the prior's idea of a worker.
        counts = np.repeat(self.prior[None] + _guess(self.emission), self.context.n_workers, axis=0)
        return self._parameters(counts, np.ones(self.emission.n_options))

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

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        if not parameters:
            return float("nan")
        logs = parameters["log_confusion"]
        sums = kernels().column_sums(logs.reshape(len(logs), -1))
        penalty = float((sums * self.prior.ravel()).sum())
        if self.history is not None:
            penalty += float((logs * self.history).sum(dtype=np.float64))
        penalty += self.class_prior * float(parameters["log_classes"].sum())
        return float(statistics["log_likelihood"]) + penalty

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        counts, classes = statistics["counts"], statistics["classes"] + self.class_prior
        if not self.prior.any():
            # Without a prior a symbol that a worker never used stays impossible for that worker.
            counts = np.where(counts.sum(axis=2, keepdims=True) > 0, np.maximum(counts, _LEAST), 0.0)
        if self.history is not None:
            counts = counts + self.history
        if self.emission.with_empty:
            return self._parameters(counts.astype(np.float64) + self.prior, classes)
        logs = np.empty(counts.shape, dtype=self.precision)
        seen = np.empty((len(counts), counts.shape[2]))
        kernels().log_shares(counts, self.prior, logs, seen)
        return {"log_confusion": logs, "log_classes": _log_classes(classes), "seen": seen}

    def project(self, parameters: Parameters) -> Parameters:
        logs = parameters["log_confusion"].astype(np.float64)
        classes = parameters["log_classes"].astype(np.float64)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        seen = np.maximum(parameters["seen"], 0.0)[:, None]
        return self._parameters(shares / shares.sum(axis=1, keepdims=True) * seen, np.exp(classes - classes.max()))

    def doubt(self, parameters: Parameters, layout: Layout) -> Array:
        """A chance p seen n times has the variance p · (1 − p) / (n + 1), and its logarithm (1 − p) / (p · (n + 1))."""
        if self.emission.plain and layout.cells is None:
            # What a worker never does is not looked up; it is only kept from overflowing.
            table = np.exp(np.minimum(-parameters["log_confusion"], 40.0)).astype(self.precision)
            table -= 1
            table /= (parameters["seen"][:, None, :] + 1).astype(self.precision)
            flat: Array = table.reshape(-1, self.emission.n_options)
            return flat
        confusion = np.exp(parameters["log_confusion"].astype(np.float64))
        variance = confusion * (1 - confusion) / (parameters["seen"][:, None, :] + 1)
        return self.emission.doubts(confusion, variance, layout).astype(self.precision)

    def _parameters(self, counts: Array, classes: Array) -> Parameters:
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


def _guess(emission: Emission) -> Array:
    """A worker who is right in seven answers of ten, and participates in half of the questions."""
    n_options, n_answers = emission.n_options, emission.n_answers
    guess = np.full((n_answers, n_options), 0.3 / max(n_options - 1, 1))
    np.fill_diagonal(guess, 0.7)
    guess[n_options:] = 1.0
    return guess


@dataclass(frozen=True, slots=True, kw_only=True)
class DawidSkene(IterativeMethod):
    """EM for the truths, each worker's confusion P(answer | truth) and the classes' shares.

    The confusion has a Dirichlet prior: `smoothing` pseudo-answers for every option and `trust` more for the right
    one; both 0 give maximum likelihood. `gold` maps questions to truths that are known; `history` maps workers to
    counts, truth × answer, from earlier work. Both hold during the whole iteration.

    >>> from crowdveil import Answers, Choices, Reports
    >>> crowd = [("ada", "nynyny"), ("bob", "nynyny"), ("cy", "yyyyyy")]
    >>> rows = [(worker, f"q{n}", answer) for worker, answers in crowd for n, answer in enumerate(answers)]
    >>> estimate = DawidSkene().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("n", "y")))))
    >>> estimate.values()
    ['n', 'y', 'n', 'y', 'n', 'y']
    """

    name: ClassVar[str] = "dawid-skene"
    summary: ClassVar[str] = "each worker's confusion and the truths together, by EM through the channel"

    max_iter: int = 500
    tol: float = 1e-8
    smoothing: float = 0.3
    trust: float = 0.1
    class_smoothing: float = 1.0
    precision: Precision = "auto"
    gold: Mapping[Hashable, object] = field(default_factory=dict)
    history: Mapping[Hashable, Array] = field(default_factory=dict)

    def model(self, context: Context) -> DawidSkeneModel:
        n_options = context.domain.size
        if context.n_workers * n_options**2 > MAX_ENTRIES:
            raise InputError(
                f"a confusion for each of {context.n_workers} workers and {n_options} options is too large",
                fix="use one-coin or majority",
            )
        emission = emission_of(table_channels(context.channels), n_options)
        prior, class_prior = self._priors(context, emission)
        return DawidSkeneModel(
            context=context,
            emission=emission,
            precision=working_precision(self.precision, context.n_reports),
            prior=prior,
            class_prior=class_prior,
        )

    def _priors(self, context: Context, emission: Emission) -> tuple[Array, float]:
        """Pseudo-counts mean unprotected answers, so under noise, where a report is worth less, they weigh more.

        There, a worker is also trusted by default.
        """
        noise = noise_of(table_channels(context.channels))
        prior = np.full((emission.n_answers, emission.n_options), self.smoothing * noise)
        prior[np.arange(emission.n_options), np.arange(emission.n_options)] += self.trust + noise - 1.0
        return prior, self.class_smoothing + class_pull(noise, context.n_questions, emission.n_options)

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        model = self.model(context_of(reports, self._start(reports, start)))
        if self.history:
            known = {worker: code for code, worker in enumerate(reports.workers.tolist()) if worker in self.history}
            model = self.recalling(model, known)
        # A warm start is spared the steep part of the climb; what is left is the slow end, where leaps pay.
        done, columns = fit_model(self, model, reports, gold_codes(self.gold, reports), leap=model.context.warm)
        confusion, classes = _confusion_of(done.parameters, reports.domain.size)
        parameters = dict(done.parameters) | {"confusion": confusion, "classes": classes}
        return finished(self, model, reports, done, columns, parameters=parameters)

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        return skill_tally(rows, columns, context)

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        right = np.einsum("wtt,t->w", *_confusion_of(parameters, context.domain.size))
        return Closing(choice_skills(right, tally, "the probability of a right answer"), choice_verdict(tally, context))

    def _start(self, reports: Reports, start: Estimate | None) -> Parameters:
        """An earlier estimate's parameters; a worker it did not know begins as the typical one."""
        if start is None or "log_confusion" not in start.parameters:
            return {}
        typical = start.parameters["log_confusion"].mean(axis=0)
        logs = carried_over(start, "log_confusion", reports, typical)
        seen = carried_over(start, "seen", reports, np.zeros(typical.shape[1]))
        if logs is None or seen is None:
            return {}
        return {"log_confusion": logs, "seen": seen, "log_classes": start.parameters["log_classes"]}

    def recalling(self, model: DawidSkeneModel, codes: Mapping[Hashable, int]) -> DawidSkeneModel:
        """The model with the history of the workers that have these codes."""
        if not codes:
            return model
        n_options = model.emission.n_options
        counts = np.zeros((model.context.n_workers, model.emission.n_answers, n_options))
        for worker, code in codes.items():
            counts[code, :n_options] = np.asarray(self.history[worker], dtype=np.float64).T
        return replace(model, history=counts)


def _confusion_of(parameters: Parameters, n_options: int) -> tuple[Array, Array]:
    """P(answer | truth), worker × truth × answer, and the shares of the classes."""
    given = np.exp(parameters["log_confusion"][:, :n_options].astype(np.float64))
    confusion = np.swapaxes(given / given.sum(axis=1, keepdims=True), 1, 2)
    return np.ascontiguousarray(confusion), np.exp(parameters["log_classes"])
