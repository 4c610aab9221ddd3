"""Weighted mean: trust each worker by the inverse of the spread of their errors (Sun et al. 2018, Algorithm 1).

μ_j = Σ q_i a_ij / Σ q_i with q_i = 1 / σ_i and σ_i the root mean square of worker i's residuals. These are the steps of
iteratively reweighted least squares for the convex F(μ) = Σ_i √|T_i| · ‖a_i − μ‖, so F never rises; with one answer per
worker F is the sum of distances, and the limit is the median.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from crowdveil.domain import Domain
from crowdveil.estimate import Estimate, Skills
from crowdveil.inference.base import IterativeMethod
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.estimation import align_parameters, build_estimate, fit_model, warm_start_parameters
from crowdveil.inference.kernels.layout import row_kernels
from crowdveil.inference.observations.numeric import (
    PRIOR_FREEDOM,
    Numbers,
    centre,
    count_by_channel,
    domain_bounds,
    domain_middle,
    hides,
    kernel_columns,
    noise_at,
    pooled_variance,
    ratio,
    read_numbers,
    shrunk,
    sums,
)
from crowdveil.inference.protocols import Block, Closing, Columns, Context, Goal, Parameters, Rows, Statistics
from crowdveil.inference.uncertainty.censoring import (
    hidden_means_seen,
    mean_histogram,
    reaching_out,
    spread_of_errors,
    squares_left,
)
from crowdveil.inference.uncertainty.fieller import Ratio, Sums, around, fieller_ratio, pooled_covariance, ratio_sums
from crowdveil.inference.uncertainty.information_floor import number_judgement, number_tally
from crowdveil.inference.uncertainty.means import rounding_of_weighted, with_interval
from crowdveil.inference.uncertainty.summaries import LEVEL
from crowdveil.reports import Reports
from crowdveil.validation import AtLeastOne, Number, Rule

Array = NDArray[Any]
_RATIO = "participation is protected, so the weighted mean is a ratio of two noisy sums; use channel-em"


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """A block's reports as numbers, and how many there are through each channel (channel × question)."""

    numbers: Numbers
    reports: Array
    answered: Sums | None = None
    """Who answered, where that is hidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedMeanModel:
    """Parameters: `weight` per worker, `variance` per worker for the intervals, and `floor`, the least spread.

    A residual of 0 would give an infinite weight. Below the floor f the distance s is therefore replaced by
    (s²/f + f) / 2, which is never less; the floor starts wide, so that no single answer that happens to lie on the
    first mean can hold it, and shrinks to `least`.
    """

    context: Context
    least: float
    as_answers: bool

    goal: ClassVar[Goal] = "fall"
    objective: ClassVar[str] = "sum of distances"
    keeps_rows: ClassVar[bool] = False
    remembers: ClassVar[bool] = False
    by_worker: ClassVar[tuple[str, ...]] = ("weight", "variance", "freedom")
    shared: ClassVar[tuple[str, ...]] = ("floor",)
    kept: ClassVar[tuple[str, ...]] = ()

    def init(self) -> Parameters:
        if self.context.warm:
            return self.context.start
        low, high = domain_bounds(self.context.domain)
        even = np.ones(self.context.n_workers)
        return {"weight": even, "variance": even, "freedom": even, "floor": np.array(max((high - low) / 4, self.least))}

    def begin(self, block: Block) -> Told:
        numbers = read_numbers(block, self.context.channels, self.context.domain, as_answers=self.as_answers)
        reports, domain = count_by_channel(block, len(self.context.channels)), self.context.domain
        hidden = hides(self.context.channels) and not self.as_answers
        answered = ratio_sums(numbers, numbers.question, (block.n_questions,), domain) if hidden else None
        return Told(numbers, reports, answered)

    def e_step(self, block: Block, parameters: Parameters, state: Told) -> tuple[Statistics, Told]:
        value, mass = self._means(block, parameters, state.numbers)
        rows = kernel_columns(state.numbers)
        squares, freedom, count = row_kernels().residual_sums(*rows, parameters["weight"], value, mass)
        statistics = {"squares": squares, "freedom": freedom, "count": count}
        # How far errors spread is asked of the last weights only.
        settled = float(parameters["floor"]) <= self.least
        if settled and state.answered is None and not self.as_answers:
            statistics |= mean_histogram(value, mass, self._channels(value, state, 1.0), self.context.domain)
        if state.answered is not None:
            channels, domain = self.context.channels, self.context.domain
            seen = hidden_means_seen(state.answered, state.reports, channels, domain) if settled else {}
            hidden = seen | state.answered.statistics()
            statistics |= {f"answered {name}": each for name, each in hidden.items()}
        return statistics, state

    def _means(self, block: Block, parameters: Parameters, rows: Numbers) -> tuple[Array, Array]:
        """The weighted means, and how much weight each rests on."""
        total, mass = row_kernels().weighted_sums(*kernel_columns(rows), parameters["weight"], block.n_questions)
        return centre(total, mass, self.context.domain), mass

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        floor = float(parameters["floor"])
        if floor > self.least:
            return float("nan")
        count = statistics["count"]
        spread = np.sqrt(statistics["squares"] / np.maximum(count, 1))
        return float((count * np.where(spread >= floor, spread, (spread**2 / floor + floor) / 2)).sum())

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        floor = max(float(parameters["floor"]) / 4, self.least)
        spread = np.sqrt(statistics["squares"] / np.maximum(statistics["count"], 1))
        crowd = pooled_variance(statistics["squares"], statistics["freedom"], self.context.domain)
        variance = shrunk(statistics["squares"], statistics["freedom"], crowd)
        answered = {name[9:]: each for name, each in statistics.items() if name.startswith("answered ")}
        squares = parameters["weight"] @ (statistics["count"] * variance)
        return {
            **(_of_the_hidden(answered) if answered else _of_the_seen(statistics, float(squares))),
            "weight": 1 / np.maximum(spread, floor),
            "variance": variance,
            "freedom": statistics["freedom"] + PRIOR_FREEDOM,
            "floor": np.array(floor),
        }

    def project(self, parameters: Parameters) -> Parameters:
        return {
            **parameters,
            "weight": np.maximum(parameters["weight"], 1e-12),
            "variance": np.maximum(parameters["variance"], 0.0),
            "freedom": np.maximum(parameters["freedom"], 1.0),
            "floor": np.maximum(parameters["floor"], self.least),
        }

    def finish(self, block: Block, parameters: Parameters, state: Told) -> Columns:
        rows, n, domain = state.numbers, block.n_questions, self.context.domain
        weight, variance = parameters["weight"][rows.worker], parameters["variance"][rows.worker]
        total, mass = (sums(rows.question, weight * each, n) for each in (rows.value, rows.share))
        noise = weight**2 * variance
        whole, count = sums(rows.question, noise, n), sums(rows.question, None, n)
        # Satterthwaite: a sum of estimated variances is as sure as its parts, each by its share.
        unsure = sums(rows.question, noise**2 / np.maximum(parameters["freedom"][rows.worker], 1.0), n)
        freedom = np.divide(whole**2, unsure, out=np.ones_like(whole), where=unsure > 0)
        raw = ratio(total, mass, domain)
        response_rate = float(parameters.get("given", 1.0))
        channels = self._channels(raw, state, response_rate)[rows.question]
        answers = (variance - channels) / response_rate
        # As far as a variance was borrowed from the crowd, the worker's own is the one that made the weight.
        variance_of_report = np.where(channels > 0, answers, np.minimum(answers, weight**-2.0))
        borrowed = PRIOR_FREEDOM / parameters["freedom"][rows.worker]
        rounded = rounding_of_weighted(
            domain, answers, weight, rows.question, n, own=variance_of_report, borrowed=borrowed
        )
        if state.answered is None or "given" not in parameters:
            spread = whole / np.maximum(mass, 1e-9) ** 2
            columns = with_interval(raw, spread, freedom, count > 0, domain, rounded=rounded)
            return self._reaching_out(columns, parameters)
        squares = np.maximum(sums(rows.question, weight**2, n), 1e-300)
        # Scaled so that weights and squares add to the same: so many equal reports they are worth (Kish 1965).
        equal = sums(rows.question, weight, n) / squares
        worth, centred = equal**2 * squares, total - mass * domain_middle(domain)
        found = Sums(worth, equal * centred, equal * mass, np.zeros((3, n)))
        hidden = _hidden(found, whole / squares, parameters, domain)
        return self._reaching_out(hidden.columns(raw, freedom, count > 0, domain, rounded=rounded), parameters)

    def _reaching_out(self, columns: Columns, parameters: Parameters) -> Columns:
        """The interval with what the ends of the scale do to it, once the spread of the errors is known."""
        if "means" not in parameters:
            return columns
        domain = self.context.domain
        return reaching_out(columns, spread_of_errors(parameters["means"], float(parameters["left"]), domain), domain)

    def _channels(self, raw: Array, state: Told, given: float) -> Array:
        """The part of a report's variance that is its channel's, by question."""
        if self.as_answers:
            return np.zeros_like(raw)
        domain = self.context.domain
        return noise_at(np.clip(raw, *domain_bounds(domain)), state.reports, self.context.channels, domain, given=given)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedMean(IterativeMethod):
    """Sun's Algorithm 1; with `as_answers` the channel's noise is left in the reports, as the paper does.

    >>> from crowdveil import Answers, Reports, Scale
    >>> crowd = {"ada": (1, 2, 3, 4), "bob": (1, 2, 3, 4), "cy": (5, 1, 5, 1)}
    >>> rows = [(worker, f"q{n}", answer) for worker, answers in crowd.items() for n, answer in enumerate(answers)]
    >>> estimate = WeightedMean().fit(Reports.unprotected(Answers.from_rows(rows, Scale(1, 5))))
    >>> [round(value, 3) for value in estimate.values()]
    [1.0, 2.0, 3.0, 4.0]
    """

    name: ClassVar[str] = "weighted-mean"
    summary: ClassVar[str] = "Sun's Algorithm 1: workers weigh by the inverse of the spread of their errors"
    numeric: ClassVar[bool] = True

    max_iter: AtLeastOne = 200
    tol: Number = 1e-8
    accelerate: bool = False  # type: ignore[misc]
    as_answers: bool = False
    least_spread: Annotated[float, Rule("above 0 and at most 1", lambda share: 0 < share <= 1)] = 1e-6
    """The smallest spread a worker may have, as a share of the domain's range."""

    def model(self, context: Context) -> WeightedMeanModel:
        low, high = domain_bounds(context.domain)
        least = self.least_spread * ((high - low) or 1.0)
        return WeightedMeanModel(context=context, least=least, as_answers=self.as_answers)

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        model = self.model(table_context(reports, _start(self, reports, start)))
        done, columns = fit_model(self, model, reports)
        return build_estimate(self, model, reports, done, columns, start)

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        return number_tally(rows, columns, context, as_answers=self.as_answers)

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        judgement = number_judgement(tally, context)
        if hides(context.channels) and not self.as_answers:
            judgement = replace(judgement, warnings=(_RATIO, *judgement.warnings))
        return Closing(_skills(parameters["variance"], parameters["freedom"]), judgement)


def _of_the_seen(statistics: Statistics, squares: float) -> Parameters:
    """What tells how far errors spread, those of workers with much weight above all; nothing for reports as answers."""
    if "means" not in statistics:
        return {}
    return {"means": statistics["means"], "left": np.array(squares_left(statistics, squares))}


def _of_the_hidden(statistics: Statistics) -> Parameters:
    """The same, and who answers."""
    crowd = pooled_covariance(statistics)
    if "means" not in statistics:
        return crowd
    left = squares_left(statistics, float(statistics["around"]), float(crowd["given"]))
    return {**crowd, "means": statistics["means"], "left": np.array(left)}


def _hidden(sums: Sums, variance: Array, parameters: Parameters, domain: Domain) -> Ratio:
    """The ratio when one report varies by `variance` around the weighted mean."""
    value = np.clip(sums.value(domain), *domain_bounds(domain)) - domain_middle(domain)
    crowd = parameters["covariance"][:, None]
    return fieller_ratio(sums, parameters, crowd * variance / np.maximum(around(crowd, value), 1e-12))


def _start(method: WeightedMean, reports: Reports, start: Estimate | None) -> Parameters:
    known = warm_start_parameters(method, start, reports, "floor", *WeightedMeanModel.by_worker)
    if not known:
        return {}
    names = WeightedMeanModel.by_worker
    carried = {name: align_parameters(start, name, reports, float(np.median(known[name]))) for name in names}
    return carried | {"floor": known["floor"]}


def _skills(variance: Array, freedom: Array) -> Skills:
    """The spread of each worker's errors, with the interval that a chi-squared sum of squares gives."""
    spread = np.sqrt(variance)
    low = spread * np.sqrt(freedom / chdtri(freedom, (1 - LEVEL) / 2))
    high = spread * np.sqrt(freedom / chdtri(freedom, (1 + LEVEL) / 2))
    return Skills(np.arange(len(spread)), spread, low, high, "the spread of errors, the channel's noise included")
