"""MACE: a worker either knows the truth or spams, and a spammer follows a strategy of their own (Hovy et al. 2013).

Truth t ~ Categorical(class shares); on each question worker i knows the truth with probability θ_i and then answers t,
and otherwise draws the answer from ξ_i:

    P(answer a | truth t) = θ_i [a = t] + (1 − θ_i) ξ_i(a).

The answer passes through its channel before it is seen. EM finds the maximum of the likelihood with `smoothing` / k
pseudo-counts on each entry of θ and ξ, k options, as the program of the authors does. They take the best of ten random
starts; here the start is the same for all workers and chance plays no part.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

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
from crowdveil.inference.kernels.layout import Layout
from crowdveil.inference.models.categorical_em import ChoiceModel, Precision, working_precision
from crowdveil.inference.observations.debiasing import channel_noise, table_channels
from crowdveil.inference.observations.likelihood import TINY, build_emission
from crowdveil.inference.protocols import Closing, Columns, Context, Parameters, Rows, Statistics
from crowdveil.inference.uncertainty.information_floor import choice_judgement, choice_skills, skill_tally
from crowdveil.inference.uncertainty.temperature import posterior_power
from crowdveil.reports import Reports
from crowdveil.validation import AtLeastOne, Number, Positive

Array = NDArray[Any]
MIN_PROBABILITY = 1e-6
INITIAL_KNOWLEDGE = 0.5
"""θ before the first pass: with equal θ and even strategies the first E-step is a majority vote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaceModel(ChoiceModel):
    """Parameters per worker: `knowledge` θ, `strategy` ξ, `response_rate`, `answers`; for all: `log_classes`."""

    smoothing: float
    reports_per_answer: float
    learn_classes: bool
    by_worker: ClassVar[tuple[str, ...]] = ("knowledge", "strategy", "response_rate", "answers")
    shared: ClassVar[tuple[str, ...]] = ("log_classes",)

    @property
    def tempers(self) -> bool:
        """As in the paper."""
        return False

    def init(self) -> Parameters:
        if self.context.warm:
            return self.context.start
        n_workers, n_options = self.context.n_workers, self.emission.n_options
        return {
            "knowledge": np.full(n_workers, INITIAL_KNOWLEDGE),
            "strategy": np.full((n_workers, n_options), 1 / n_options),
            "response_rate": np.full(n_workers, 0.5 if self.emission.with_empty else 1.0),
            "answers": np.zeros(n_workers),
            "log_classes": np.full(n_options, -np.log(n_options)),
        }

    def confusion(self, parameters: Parameters) -> Array:
        """P(answer | truth), worker × answer × truth; ∅ stands last where a channel hides it."""
        n_options = self.emission.n_options
        knowledge, rate = parameters["knowledge"][:, None], parameters["response_rate"][:, None]
        spam = (1 - knowledge) * rate * parameters["strategy"]
        confusion = np.empty((len(knowledge), self.emission.n_answers, n_options))
        confusion[:, :n_options] = spam[:, :, None]
        options = np.arange(n_options)
        confusion[:, options, options] += knowledge * rate
        confusion[:, n_options:] = (1 - rate)[:, :, None]
        return confusion

    def logs(self, parameters: Parameters, layout: Layout) -> Array:
        return self.emission.logs(self.confusion(parameters), layout, self.precision)

    def collect(self, counts: Array, parameters: Parameters, layout: Layout) -> Statistics:
        """E-step: how often each worker knew, and what the worker answered when spamming."""
        n_options = self.emission.n_options
        expected = self.emission.answers(counts, self.confusion(parameters), layout)
        answers = expected[:, :n_options].sum(axis=2)
        right = np.einsum("waa->wa", expected[:, :n_options])
        known = parameters["knowledge"][:, None]
        right = right * known / np.maximum(known + (1 - known) * parameters["strategy"], TINY)
        return {
            "known": right.sum(axis=1),
            "spam": answers - right,
            "empty": expected[:, n_options:].sum(axis=(1, 2)),
        }

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        known, spam, empty = statistics["known"], statistics["spam"], statistics["empty"]
        spammed = spam.sum(axis=1)
        smoothed = spam + self.smoothing
        answered = known + spammed
        total = answered + empty
        classes = statistics["classes"] + 1 if self.learn_classes else np.ones(self.emission.n_options)
        return self.project(
            {
                "knowledge": (known + self.smoothing) / (answered + 2 * self.smoothing),
                "strategy": smoothed / smoothed.sum(axis=1, keepdims=True),
                "response_rate": np.divide(answered, total, out=np.ones_like(total), where=total > 0),
                "answers": answered,
                "log_classes": np.log(classes),
            }
        )

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        knowledge = parameters["knowledge"]
        penalty = np.log(knowledge).sum() + np.log1p(-knowledge).sum() + np.log(parameters["strategy"]).sum()
        classes = parameters["log_classes"].sum() if self.learn_classes else 0.0
        return float(statistics["log_likelihood"] + self.smoothing * penalty + classes)

    def project(self, parameters: Parameters) -> Parameters:
        strategy = np.maximum(parameters["strategy"], MIN_PROBABILITY)
        classes = np.exp(parameters["log_classes"] - parameters["log_classes"].max())
        return {
            "knowledge": np.clip(parameters["knowledge"], MIN_PROBABILITY, 1 - MIN_PROBABILITY),
            "strategy": strategy / strategy.sum(axis=1, keepdims=True),
            "response_rate": np.clip(
                parameters["response_rate"], MIN_PROBABILITY if self.emission.with_empty else 1.0, 1.0
            ),
            "answers": np.maximum(parameters["answers"], 0.0),
            "log_classes": np.log(np.maximum(classes / classes.sum(), MIN_PROBABILITY)),
        }

    def doubt(self, parameters: Parameters, layout: Layout) -> Array:
        """Delta method: Var(log P(s | t)) = (∂P/∂θ / P)² Var(θ), with θ's variance as in a sample of its answers."""
        n_options = self.emission.n_options
        worker, symbol = self.emission.cells(layout)
        table = self.emission.table[:n_options].T[symbol]
        spam = np.einsum("ca,ca->c", table, parameters["strategy"][worker])
        slope = parameters["response_rate"][worker][:, None] * (table - spam[:, None])
        chance = np.maximum(self.emission.chances(self.confusion(parameters), layout), TINY)
        knowledge = parameters["knowledge"]
        # A report through a channel is worth less than an answer; one answer more keeps the sample from vanishing.
        answers = parameters["answers"] / self.reports_per_answer + 1
        variance = knowledge * (1 - knowledge) / answers
        doubt: Array = ((slope / chance) ** 2 * variance[worker][:, None]).astype(self.precision)
        return doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class Mace(IterativeMethod):
    """EM for the truths, each worker's probability of knowing them and each worker's spamming strategy.

    Hovy, Berg-Kirkpatrick, Vaswani & Hovy: Learning Whom to Trust with MACE. NAACL 2013.

    >>> from crowdveil import Answers, Choices, Reports
    >>> crowd = [("ada", "nynyny"), ("bob", "nynyny"), ("cy", "yyyyyy")]
    >>> rows = [(worker, f"q{n}", answer) for worker, answers in crowd for n, answer in enumerate(answers)]
    >>> estimate = Mace().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("n", "y")))))
    >>> estimate.values()
    ['n', 'y', 'n', 'y', 'n', 'y']
    >>> estimate.skills.skill.round(2)
    array([1., 1., 0.])
    """

    name: ClassVar[str] = "mace"
    summary: ClassVar[str] = "each worker knows the truth or spams by a strategy of their own (Hovy et al. 2013)"

    max_iter: AtLeastOne = 500
    tol: Number = 1e-8
    accelerate: bool = False  # type: ignore[misc]
    smoothing: Positive = 0.01
    classes: Literal["even", "learned"] = "even"
    precision: Precision = "auto"
    gold: Mapping[Hashable, object] = field(default_factory=dict)

    def model(self, context: Context) -> MaceModel:
        channels = table_channels(context.channels)
        return MaceModel(
            context=context,
            emission=build_emission(channels, context.domain.size),
            precision=working_precision(self.precision, context.n_reports),
            smoothing=self.smoothing / context.domain.size,
            reports_per_answer=channel_noise(channels),
            learn_classes=self.classes == "learned",
        )

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        model = self.model(table_context(reports, _start_parameters(self, reports, start)))
        done, columns = fit_model(self, model, reports, gold_codes(self.gold, reports))
        return build_estimate(self, model, reports, done, columns, start)

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        return skill_tally(rows, columns, context)

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        skills = choice_skills(parameters["knowledge"], tally, "the probability of knowing the truth")
        return Closing(skills, choice_judgement(tally, context, posterior_power=posterior_power(parameters)))


def _start_parameters(method: Mace, reports: Reports, start: Estimate | None) -> Parameters:
    """An earlier estimate's parameters; a worker it did not meet begins with the average ones."""
    earlier = warm_start_parameters(method, start, reports, *MaceModel.by_worker, *MaceModel.shared)
    if not earlier:
        return {}
    aligned = {name: align_parameters(start, name, reports, earlier[name].mean(axis=0)) for name in MaceModel.by_worker}
    return aligned | {name: earlier[name] for name in MaceModel.shared}
