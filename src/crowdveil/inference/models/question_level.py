"""Methods without iteration as models, so that every engine can run them block by block.

Some look at one question at a time and need no pass at all. Means and medians need one: how far answers spread in the
whole crowd says how wide the interval of a question with few answers must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import Domain
from crowdveil.inference.observations.numeric import (
    common_freedom,
    domain_bounds,
    domain_middle,
    half_step,
    noise_at,
    pooled_variance,
    shrunk,
    variance_statistics,
)
from crowdveil.inference.protocols import Block, Columns, Context, Goal, Parameters, Rows, Statistics
from crowdveil.inference.uncertainty.censoring import (
    hidden_means_seen,
    mean_histogram,
    reaching_out,
    spread_of_errors,
    squares_left,
)
from crowdveil.inference.uncertainty.fieller import Sums, around, fieller_ratio, pooled_covariance
from crowdveil.inference.uncertainty.means import (
    remove_rounding,
    rounded_reach,
    rounding,
    rounding_of_medians,
    with_interval,
)
from crowdveil.inference.uncertainty.summaries import LEVEL

Array = NDArray[Any]


class ByQuestion(Protocol):
    """A method whose results for a question depend on the reports to that question alone."""

    def columns(self, rows: Rows, context: Context) -> Columns:
        """The results for the questions of these rows."""


class ByCentre(Protocol):
    """A method that finds the centre of each question's answers."""

    def centres(self, rows: Rows, context: Context) -> Found:
        """The centres, sums where the mean is a ratio, or bounds where an interval was found without the crowd."""


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """By question: whether a distance is cut, the answers' mean, and their squared distances from it.

    `worth` is by how much a centre's answers vary more than normal answers, were it their mean.
    """

    here: Array
    mean: Array
    squares: Array
    freedom: Array
    worth: Array

    def statistics(self, domain: Domain) -> Statistics:
        seen = mean_histogram(self.mean, self.freedom, 0.0, domain)
        return {"cut_means": seen["means"], "cut_squares": self.squares.sum()}


@dataclass(frozen=True, slots=True, eq=False)
class Centres:
    """By question: the value as it comes, its answers' squared distances from it and their degrees of freedom.

    The variance of a value is `scale` times the variance of one answer, of which `noise` is the channels' part. The
    error of rounding to levels has the variance `rounded`, or that of a mean of levels where that is not given. Where
    the variance came from the distance of two levels, it is `levels` times that distance squared. A `clipped` value is
    one that the ends of the scale draw inwards; `tails` is the channels' fourth cumulant. Where that distance reaches
    an end of the scale it is `cut`, and might have been longer.
    """

    value: Array
    squares: Array
    freedom: Array
    scale: Array
    answered: Array
    noise: Array | float = 0.0
    rounded: Array | None = None
    levels: Array | float = 0.0
    clipped: bool = False
    tails: Array | float = 0.0
    cut: Cut | None = None

    def columns(self, spread: Array, freedom: Array, context: Context) -> Columns:
        """Value and interval when one answer varies by `spread`, known with this freedom."""
        rounded = rounding(context.domain, spread - self.noise) if self.rounded is None else self.rounded
        variance = remove_rounding(context.domain, spread * self.scale, self.levels)
        return with_interval(self.value, variance, freedom, self.answered, context.domain, rounded=rounded)


@dataclass(frozen=True, slots=True, eq=False)
class Ratios:
    """By question: sums whose ratio is the mean, and how many reports came through each channel."""

    sums: Sums
    reports: Array


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """By question: a value, an interval that lacks the error of rounding, and votes at its level and `beside` it."""

    value: Array
    low: Array
    high: Array
    inside: Array
    beside: Array
    answered: Array

    def columns(self, beside: float, domain: Domain) -> Columns:
        """Value and interval when so many answers are beside the median's level for each that is at it."""
        reach = (self.high - self.low) / 2
        further = np.maximum(rounded_reach(reach, rounding_of_medians(domain, beside)) - reach, 0.0)
        ends = domain_bounds(domain)
        low, high = (np.clip(each, *ends) for each in (self.low - further, self.high + further))
        return {
            "value": np.where(self.answered, np.clip(self.value, low, high), np.nan),
            "confidence": np.where(self.answered, LEVEL, 0.0),
            "low": np.where(self.answered, low, ends[0]),
            "high": np.where(self.answered, high, ends[1]),
        }


_FEW = 30.0
"""With fewer answers than this beyond one a question, their variance is hardly known."""
Found: TypeAlias = Centres | Ratios | Bounds


@dataclass(frozen=True, slots=True)
class _NoPasses:
    """What a model has to say that is never iterated."""

    context: Context

    objective: ClassVar[str] = ""
    goal: ClassVar[Goal] = "vanish"
    remembers: ClassVar[bool] = False
    by_worker: ClassVar[tuple[str, ...]] = ()
    shared: ClassVar[tuple[str, ...]] = ()
    kept: ClassVar[tuple[str, ...]] = ()

    def init(self) -> Parameters:
        return {}

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        return 0.0

    def project(self, parameters: Parameters) -> Parameters:
        return parameters


@dataclass(frozen=True, slots=True)
class QuestionModel(_NoPasses):
    """No parameters, no passes: the results follow from the rows."""

    method: ByQuestion

    keeps_rows: ClassVar[bool] = True

    def begin(self, block: Block) -> None:
        return None

    def e_step(self, block: Block, parameters: Parameters, state: None) -> tuple[Statistics, None]:
        return {}, None

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        return {}

    def finish(self, block: Block, parameters: Parameters, state: None) -> Columns:
        return self.method.columns(block, self.context)


@dataclass(frozen=True, slots=True)
class CentreModel(_NoPasses):
    """Parameters: `crowd`, the variance of an answer around its question's centre, and its worth in answers."""

    method: ByCentre

    keeps_rows: ClassVar[bool] = False

    def begin(self, block: Rows) -> Found:
        return self.method.centres(block, self.context)

    def e_step(self, block: Rows, parameters: Parameters, state: Found) -> tuple[Statistics, Found]:
        if isinstance(state, Bounds):
            return {"inside": state.inside.sum(), "beside": state.beside.sum()}, state
        if isinstance(state, Ratios):
            return variance_statistics(state.sums.squares[0], state.sums.freedom) | self._hidden(state), state
        statistics = variance_statistics(state.squares, state.freedom, state.tails)
        if state.clipped:
            statistics |= mean_histogram(state.value, state.freedom, state.noise, self.context.domain)
        if state.cut is not None:
            statistics |= state.cut.statistics(self.context.domain)
        return statistics, state

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        if "inside" in statistics:
            return {"beside": statistics["beside"] / np.maximum(statistics["inside"], 1.0)}
        if "mass" in statistics:
            crowd = pooled_covariance(statistics)
            first = statistics | {"squares": statistics["squares"][0]}
            squares = squares_left(statistics, float(statistics["around"]), float(crowd["given"]))
            errors = spread_of_errors(statistics["means"], squares, self.context.domain)
            prior = common_freedom(first, float(crowd["covariance"][0]))
            return {**crowd, "prior": np.array(prior), "errors": np.array(errors)}
        variance = pooled_variance(statistics["squares"], statistics["freedom"], self.context.domain)
        parameters_next = {
            "crowd": np.array(variance),
            "freedom": np.asarray(statistics["freedom"], dtype=np.float64),
            "prior": np.array(common_freedom(statistics, variance)),
        }
        if "means" in statistics:
            squares = squares_left(statistics, float(statistics["squares"]))
            parameters_next["errors"] = np.array(spread_of_errors(statistics["means"], squares, self.context.domain))
        if "cut_means" in statistics:
            squares = float(statistics["cut_squares"])
            parameters_next["uncut"] = np.array(spread_of_errors(statistics["cut_means"], squares, self.context.domain))
        return parameters_next

    def finish(self, block: Rows, parameters: Parameters, state: Found) -> Columns:
        if isinstance(state, Bounds):
            return state.columns(float(parameters["beside"]), self.context.domain)
        prior, context = float(parameters["prior"]), self.context
        if isinstance(state, Ratios):
            return self._ratios(state, parameters, prior)
        spread = shrunk(state.squares, state.freedom, float(parameters["crowd"]), prior)
        total = float(parameters["freedom"])
        if total < _FEW:
            spread = self._of_few(spread, state.noise, alone=total < 1)
        if state.cut is not None:
            uncut = state.cut.worth * float(parameters["uncut"]) ** 2
            spread = np.where(state.cut.here, np.maximum(spread, uncut), spread)
        # The crowd is no better known than from all answers there are, however much it should count.
        columns = state.columns(spread, np.minimum(state.freedom + prior, max(total, 1.0)), context)
        return reaching_out(columns, float(parameters["errors"]), context.domain) if state.clipped else columns

    def _of_few(self, spread: Array, noise: Array | float, *, alone: bool) -> Array:
        """The channels' noise is known, and so is what rounding hides: few reports may agree by chance within less.

        Where no question has two reports, their answers may lie anywhere, and the noise comes on top.
        """
        least = np.maximum(noise, half_step(self.context.domain) ** 2 / 3)
        variance: Array = np.maximum(spread + noise if alone else spread, least)
        return variance

    def _ratios(self, state: Ratios, parameters: Parameters, prior: float) -> Columns:
        domain, response_rate, sums = self.context.domain, float(parameters["given"]), state.sums
        spread = shrunk(sums.squares, sums.freedom, parameters["covariance"][:, None], prior)
        raw = sums.value(domain)
        value = np.clip(raw, *domain_bounds(domain))
        noise = noise_at(value, state.reports, self.context.channels, domain, given=response_rate)
        rounded = rounding(domain, (around(spread, value - domain_middle(domain)) - noise) / response_rate)
        ratio = fieller_ratio(sums, parameters, spread)
        columns = ratio.columns(raw, sums.freedom + prior, sums.count > 0, domain, rounded=rounded)
        return reaching_out(columns, float(parameters["errors"]), domain)

    def _hidden(self, state: Ratios) -> Statistics:
        seen = hidden_means_seen(state.sums, state.reports, self.context.channels, self.context.domain)
        return seen | state.sums.statistics()

    def at_once(self, rows: Rows) -> Columns:
        """All of a table in one go."""
        state = self.begin(rows)
        return self.finish(rows, self.m_step(self.e_step(rows, {}, state)[0], {}), state)
