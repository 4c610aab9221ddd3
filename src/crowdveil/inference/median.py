"""Median: the middle of the reports; under a channel with a table, of the answers' debiased distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.estimate import Estimate
from crowdveil.inference.base import WithoutIteration
from crowdveil.inference.blocks import context_of
from crowdveil.inference.finishing import LEVEL, QUANTILE, on_simplex
from crowdveil.inference.fitting import from_columns
from crowdveil.inference.floors import number_tally, number_verdict
from crowdveil.inference.model import Closing, Columns, Context, Parameters, Rows, Statistics
from crowdveil.inference.numbers import Numbers, bounds_of, half_step, numbers_of, sums
from crowdveil.inference.questionwise import CentreModel, Centres
from crowdveil.inference.votes import effective_counts, table_channels, votes_of
from crowdveil.reports import Reports

Array = NDArray[Any]
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
    shares = on_simplex(votes_of(rows, channels, rows.n_questions, context.domain.size))
    numbers = context.domain.numbers
    order = np.argsort(numbers)
    below = np.cumsum(shares[:, order], axis=1)
    # Shares that reach one half exactly leave the middle open: the average of both sides, as for plain answers.
    lower = numbers[order][np.argmax(below >= 0.5 - 1e-9, axis=1)]
    upper = numbers[order][np.argmax(below > 0.5 + 1e-9, axis=1)]
    value = (lower + upper) / 2
    answered = np.bincount(rows.question, minlength=rows.n_questions) > 0
    # Woodruff's interval: the share of answers below the median is known up to its own noise; read both ends back.
    worth = np.maximum(effective_counts(rows, channels, rows.n_questions), 1e-9)
    reach = QUANTILE * np.sqrt(0.25 / worth)[:, None]
    half = half_step(context.domain)
    low, high = bounds_of(context.domain)
    below_low = numbers[order][np.argmax(below >= 0.5 - reach, axis=1)] - half
    above = below >= 0.5 + reach
    above_high = np.where(above.any(axis=1), numbers[order][np.argmax(above, axis=1)] + half, high)
    return {
        "value": np.where(answered, value, np.nan),
        "confidence": np.where(answered, LEVEL, 0.0),
        "low": np.where(answered & (reach[:, 0] < 0.5), np.clip(below_low, low, high), low),
        "high": np.where(answered, np.clip(above_high, low, high), high),
    }
