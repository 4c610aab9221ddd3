"""One-coin Dawid–Skene: a worker is right with one probability, and otherwise any other option is as likely."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.estimate import Estimate
from crowdveil.inference.base import IterativeMethod, Method
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.estimation import (
    align_parameters,
    build_estimate,
    fit_model,
    gold_codes,
    warm_start_parameters,
)
from crowdveil.inference.kernels.layout import Layout, kernels
from crowdveil.inference.models.categorical_em import ChoiceModel, Precision, working_precision
from crowdveil.inference.observations.debiasing import CLASS_SMOOTHING, channel_noise, class_pull, table_channels
from crowdveil.inference.observations.likelihood import build_emission
from crowdveil.inference.priors.crowd import CrowdPrior, coins, deviations, no_errors, votes_by_symbol
from crowdveil.inference.protocols import Closing, Columns, Context, Parameters, Rows, Statistics
from crowdveil.inference.uncertainty.information_floor import choice_judgement, choice_skills, skill_tally
from crowdveil.inference.uncertainty.parameter_variance import coin_doubts, coin_variance, reports_per_answer
from crowdveil.inference.uncertainty.temperature import posterior_power
from crowdveil.reports import Reports
from crowdveil.validation import AtLeastOne, NotNegative, Number

Array = NDArray[Any]
LEAST = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCoinModel(ChoiceModel):
    """Parameters: `skill` and `given` (share of questions answered) per worker, `seen` (answers), `log_classes`."""

    noise: float
    class_prior: float | None
    """Pseudo-questions per class, or None where all classes are held equally likely."""
    votes: Array
    by_worker: ClassVar[tuple[str, ...]] = ("skill", "given", "seen")
    shared: ClassVar[tuple[str, ...]] = ("log_classes", "crowd")

    def init(self) -> Parameters:
        n_workers, n_options = self.context.n_workers, self.emission.n_options
        crowd = CrowdPrior.begin(self.context.start, with_empty=self.emission.with_empty)
        return {
            "skill": np.full(n_workers, crowd.accuracy),
            "given": np.full(n_workers, crowd.given),
            "seen": np.full(n_workers, crowd.skill),
            "log_classes": np.full(n_options, -np.log(n_options)),
            "crowd": crowd.array,
        }

    def confusion(self, parameters: Parameters) -> Array:
        """P(answer | truth), worker × answer × truth."""
        n_options = self.emission.n_options
        right = parameters["skill"] * parameters["given"]
        wrong = (1 - parameters["skill"]) * parameters["given"] / max(n_options - 1, 1)
        confusion = np.empty((len(right), self.emission.n_answers, n_options))
        confusion[:, :n_options] = wrong[:, None, None]
        options = np.arange(n_options)
        confusion[:, options, options] = right[:, None]
        confusion[:, n_options:] = (1 - parameters["given"])[:, None, None]
        return confusion

    def logs(self, parameters: Parameters, layout: Layout) -> Array:
        if not (self.emission.plain and layout.cells is None):
            return self.emission.logs(self.confusion(parameters), layout, self.precision)
        n_options = self.emission.n_options
        skill = parameters["skill"]
        right, wrong = np.log(skill), np.log((1 - skill) / max(n_options - 1, 1))
        table = np.empty((len(skill), n_options, n_options), dtype=self.precision)
        table[:] = wrong[:, None, None]
        options = np.arange(n_options)
        table[:, options, options] = right[:, None]
        return table.reshape(-1, n_options)

    def collect(self, counts: Array, parameters: Parameters, layout: Layout) -> Statistics:
        n_options = self.emission.n_options
        if not (self.emission.plain and layout.cells is None):
            counts = self.emission.answers(counts, self.confusion(parameters), layout)
        counts = counts.reshape(-1, self.emission.n_answers, n_options)
        return {
            "right": np.einsum("wtt->w", counts[:, :n_options]).astype(np.float64),
            "given": counts[:, :n_options].sum(axis=(1, 2), dtype=np.float64),
            "empty": counts[:, n_options:].sum(axis=(1, 2), dtype=np.float64),
        }

    def more(self, counts: Array, posterior: Array, parameters: Parameters, layout: Layout) -> Statistics:
        """Before the strength of the prior is fitted: how each worker's share of right answers differs."""
        crowd = CrowdPrior.of(parameters["crowd"])
        if not crowd.due:
            return {}
        doubled = np.zeros_like(counts)
        kernels().sweep_counts(layout, posterior * posterior, doubled)
        mean = coins(parameters["skill"], no_errors(self.emission.n_options))
        return deviations(counts, doubled, parameters["given"], mean, self.votes, layout)

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        crowd = CrowdPrior.of(parameters["crowd"])
        if not crowd.settled:
            return float("nan")
        skill = parameters["skill"]
        right, wrong = crowd.skill * crowd.accuracy, crowd.skill * (1 - crowd.accuracy)
        penalty = right * np.log(skill).sum() + wrong * np.log1p(-skill).sum()
        if self.class_prior is not None:
            penalty += self.class_prior * parameters["log_classes"].sum()
        return float(statistics["log_likelihood"] + penalty)

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        answered, empty, right = statistics["given"], statistics["empty"], statistics["right"]
        crowd = CrowdPrior.of(parameters["crowd"])
        if not crowd.settled:
            crowd = crowd.refit(statistics, parameters["skill"], no_errors(self.emission.n_options))
            crowd = crowd.next(right, answered, float(empty.sum()), self.noise)
        classes = np.ones(self.emission.n_options)
        if self.class_prior is not None and crowd.apart:
            classes = statistics["classes"] + self.class_prior
        return self.project(
            {
                "skill": crowd.skills(right, answered),
                "given": np.divide(answered, answered + empty, out=np.ones_like(answered), where=answered + empty > 0),
                "seen": answered + crowd.skill,
                "log_classes": np.log(np.maximum(classes, LEAST)),
                "crowd": crowd.array,
            }
        )

    def project(self, parameters: Parameters) -> Parameters:
        classes = np.exp(parameters["log_classes"] - parameters["log_classes"].max())
        return {
            "skill": np.clip(parameters["skill"], LEAST, 1 - LEAST),
            "given": np.clip(parameters["given"], LEAST if self.emission.with_empty else 1.0, 1.0),
            "seen": np.maximum(parameters["seen"], 0.0),
            "log_classes": np.log(np.maximum(classes / classes.sum(), LEAST)),
            "crowd": parameters["crowd"],
        }

    def doubt(self, parameters: Parameters, layout: Layout) -> Array:
        crowd, skill = CrowdPrior.of(parameters["crowd"]), parameters["skill"]
        reports = np.maximum(parameters["seen"] - crowd.skill, 0.0)
        variance = coin_variance(skill, crowd.skill, reports, reports_per_answer(self.noise, parameters))
        by_truth = np.broadcast_to(variance[:, None], (len(skill), self.emission.n_options))
        errors = no_errors(self.emission.n_options)
        return coin_doubts(self.emission, self.confusion(parameters), errors, by_truth, layout).astype(self.precision)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCoin(IterativeMethod):
    """EM for the truths and one skill per worker, whose prior is fitted to the crowd.

    All classes are held equally likely unless `classes` is "learned": a single coin leaves so much unexplained that
    learned shares run away to the larger class.

    >>> from crowdveil import Answers, Choices, Reports
    >>> crowd = [("ada", "nynyny"), ("bob", "nynyny"), ("cy", "yyyyyy")]
    >>> rows = [(worker, f"q{n}", answer) for worker, answers in crowd for n, answer in enumerate(answers)]
    >>> estimate = OneCoin().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("n", "y")))))
    >>> estimate.skills.skill.round(2)
    array([0.92, 0.92, 0.63])
    """

    name: ClassVar[str] = "one-coin"
    summary: ClassVar[str] = "one probability of being right per worker, by EM through the channel"

    max_iter: AtLeastOne = 500
    tol: Number = 1e-8
    accelerate: bool = False  # type: ignore[misc]
    classes: Literal["even", "learned"] = "even"
    class_smoothing: NotNegative = CLASS_SMOOTHING
    precision: Precision = "auto"
    gold: Mapping[Hashable, object] = field(default_factory=dict)

    def model(self, context: Context) -> OneCoinModel:
        channels = table_channels(context.channels)
        emission = build_emission(channels, context.domain.size)
        return OneCoinModel(
            context=context,
            emission=emission,
            precision=working_precision(self.precision, context.n_reports),
            noise=channel_noise(channels),
            class_prior=class_pull(channels, self.class_smoothing) if self.classes == "learned" else None,
            votes=votes_by_symbol(channels, emission.n_options),
        )

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        model = self.model(table_context(reports, one_coin_start(self, reports, start)))
        done, columns = fit_model(self, model, reports, gold_codes(self.gold, reports))
        return build_estimate(self, model, reports, done, columns, start)

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        return skill_tally(rows, columns, context)

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        skills = choice_skills(parameters["skill"], tally, "the probability of a right answer")
        return Closing(skills, choice_judgement(tally, context, posterior_power=posterior_power(parameters)))


def one_coin_start(method: Method, reports: Reports, start: Estimate | None) -> Parameters:
    """An earlier estimate's parameters; a worker it did not know begins with the average skill."""
    known = warm_start_parameters(method, start, reports, *OneCoinModel.by_worker, *OneCoinModel.shared)
    if not known:
        return {}
    carried = {name: align_parameters(start, name, reports, known[name].mean()) for name in OneCoinModel.by_worker}
    return carried | {name: known[name] for name in OneCoinModel.shared}
