"""Median: the middle of the reports; under a channel with a table, of the answers' debiased distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.domain import Domain
from crowdveil.estimate import Estimate
from crowdveil.inference.base import WithoutIteration
from crowdveil.inference.blocks import context_of
from crowdveil.inference.finishing import LEVEL, QUANTILE, on_simplex
from crowdveil.inference.fitting import from_columns
from crowdveil.inference.floors import number_tally, number_verdict
from crowdveil.inference.model import Closing, Columns, Context, Parameters, Rows, Statistics
from crowdveil.inference.numbers import Numbers, bounds_of, half_step, numbers_of, sums
from crowdveil.inference.questionwise import CentreModel, Centres
from crowdveil.inference.votes import channel_worth, table_channels, votes_of
from crowdveil.reports import Reports

Array = NDArray[Any]
_FINER = 8
"""Numbers looked at between two levels."""
_WIDER = 1.2
"""The variance of a median over that of a mean: π/2 for normal errors, less for crowds of unequal workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Median(WithoutIteration):
    """The middle answer, or the average of the two middle ones.

    >>> from crowdveil import Answers, Reports, Scale
    >>> rows = [("ada", "q1", 1), ("bob", "q1", 2), ("cy", "q1", 5)]
    >>> Median().fit(Reports.unprotected(Answers.from_rows(rows, Scale(1, 5)))).values()
    [2.0]
    """

    name: ClassVar[str] = "median"
    summary: ClassVar[str] = "the middle of the answers' distribution, the channel's noise taken out"
    numeric: ClassVar[bool] = True

    max_iter: ClassVar[int] = 1

    as_answers: bool = False

    def model(self, context: Context) -> CentreModel:
        return CentreModel(context, self)

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        return from_columns(self, reports, self.model(context_of(reports)).at_once(reports))

    def centres(self, rows: Rows, context: Context) -> Centres | Columns:
        """The middles; under noise with a table the finished columns."""
        tables = [channel for channel in context.channels if isinstance(channel, Channel)]
        noisy = not all(channel.is_identity for channel in tables)
        if noisy and len(tables) == len(context.channels) and not self.as_answers:
            return _debiased(rows, context)
        numbers = numbers_of(rows, context.channels, context.domain, as_answers=self.as_answers)
        count = np.bincount(numbers.question, minlength=rows.n_questions)
        value = np.clip(_middles(numbers, count), *bounds_of(context.domain))
        squares = sums(numbers.question, (numbers.value - value[numbers.question]) ** 2, rows.n_questions)
        # A median of levels is a level (or between two): the truth may lie half a step beside it.
        rounding = half_step(context.domain) ** 2 / 3
        return Centres(value, squares, np.maximum(count - 1.0, 0.0), _WIDER / np.maximum(count, 1), count > 0, rounding)

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        return number_tally(rows, columns, context, as_answers=self.as_answers)

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        return Closing(verdict=number_verdict(tally, context))


def _middles(rows: Numbers, count: Array) -> NDArray[np.float64]:
    if not len(rows.value):
        return np.zeros(len(count))
    ranked = rows.value[np.lexsort((rows.value, rows.question))]
    first = np.cumsum(count) - count
    lower = np.minimum(first + np.maximum(count - 1, 0) // 2, len(ranked) - 1)
    upper = np.minimum(first + count // 2, len(ranked) - 1)
    middles: NDArray[np.float64] = (ranked[lower] + ranked[upper]) / 2
    return middles


def _debiased(rows: Rows, context: Context) -> Columns:
    channels = table_channels(context.channels)
    votes = votes_of(rows, channels, rows.n_questions, context.domain.size)
    shares = on_simplex(votes)
    numbers = context.domain.numbers
    order = np.argsort(numbers)
    below = np.cumsum(shares[:, order], axis=1)
    # Shares that reach one half exactly leave the middle open: the average of both sides, as for plain answers.
    lower = numbers[order][np.argmax(below >= 0.5 - 1e-9, axis=1)]
    upper = numbers[order][np.argmax(below > 0.5 + 1e-9, axis=1)]
    answered = np.bincount(rows.question, minlength=rows.n_questions) > 0
    low, high = _woodruff(rows, context, votes)
    value = np.clip((lower + upper) / 2, low, high)
    ends = bounds_of(context.domain)
    return {
        "value": np.where(answered, value, np.nan),
        "confidence": np.where(answered, LEVEL, 0.0),
        "low": np.where(answered, low, ends[0]),
        "high": np.where(answered, high, ends[1]),
    }


def _woodruff(rows: Rows, context: Context, votes: Array) -> tuple[Array, Array]:
    """The numbers below which half of the answers may lie, by what the channels' noise allows (Woodruff 1952).

    Answers spread evenly around their level, so that the share below any number is a sum of votes, unbiased as they
    are; at the median it is one half up to a noise whose variance the channels tell. All numbers at which it is are
    within the interval, and none that only the scale's end would put there.
    """
    places, scores = _places(context.domain)
    apart = votes @ scores
    variance = _variance(rows, context, votes, scores)
    distance = np.abs(apart) / np.sqrt(np.maximum(variance, 1e-12))
    held = distance <= np.maximum(QUANTILE, distance.min(axis=1, keepdims=True))
    return places[held.argmax(axis=1)], places[len(places) - 1 - held[:, ::-1].argmax(axis=1)]


def _places(domain: Domain) -> tuple[Array, Array]:
    """Numbers on the scale, and for each (option × number) how much of an answer lies below it, less one half."""
    numbers, half = domain.numbers, half_step(domain)
    low, high = bounds_of(domain)
    places = np.linspace(low, high, _FINER * max(len(numbers) - 1, 1) + 1)
    below = np.clip((places - numbers[:, None] + half) / max(2 * half, 1e-12), 0.0, 1.0)
    return places, below - 0.5


def _variance(rows: Rows, context: Context, votes: Array, scores: Array) -> Array:
    """The variance of votes @ scores where their expectation is 0, question × number."""
    channels = table_channels(context.channels)
    worth = np.array([channel_worth(channel) for channel in channels])
    total: Array = np.zeros((len(votes), scores.shape[1]))
    shares = on_simplex(votes)
    for index, channel in enumerate(channels):
        weight = worth[index] / worth.max()
        count = np.bincount(rows.question[rows.channel == index], minlength=len(votes))
        squares = channel.table @ (channel.votes[:, : len(scores)] @ scores) ** 2
        within = shares @ squares[: len(scores)]
        if channel.protects_participation:
            given = np.clip(votes.sum(axis=1) / np.maximum(weight * count, 1e-9), 0.0, 1.0)[:, None]
            within = given * within + (1 - given) * squares[-1]
        total += (count * weight**2)[:, None] * within
    return total
