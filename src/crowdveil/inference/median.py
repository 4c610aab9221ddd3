"""Median: the middle of the reports; under a channel with a table, of the answers' debiased distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.estimate import Estimate
from crowdveil.inference.base import Method
from crowdveil.inference.finishing import LEVEL, QUANTILE, on_simplex
from crowdveil.inference.fitting import from_columns
from crowdveil.inference.floors import told_numbers
from crowdveil.inference.numbers import Numbers, bounds_of, half_step, numbers_of, pooled, shrunk, sums, with_interval
from crowdveil.inference.votes import effective_counts, table_channels, votes_of
from crowdveil.reports import Reports

Array = NDArray[Any]
_WIDER = 1.2
"""The variance of a median over that of a mean: π/2 for normal errors, less for crowds of unequal workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Median(Method):
    """The middle answer, or the average of the two middle ones.

    >>> from crowdveil import Answers, Reports, Scale
    >>> rows = [("ada", "q1", 1), ("bob", "q1", 2), ("cy", "q1", 5)]
    >>> Median().fit(Reports.unprotected(Answers.from_rows(rows, Scale(1, 5)))).values()
    [2.0]
    """

    name: ClassVar[str] = "median"
    summary: ClassVar[str] = "the middle of the answers' distribution, the channel's noise taken out"
    numeric: ClassVar[bool] = True

    as_answers: bool = False

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        noisy = not all(isinstance(channel, Channel) and channel.is_identity for channel in reports.channels)
        tables = all(isinstance(channel, Channel) for channel in reports.channels)
        columns = _debiased(reports) if noisy and tables and not self.as_answers else self._sorted(reports)
        return told_numbers(from_columns(self, reports, columns), reports, as_answers=self.as_answers)

    def _sorted(self, reports: Reports) -> dict[str, Array]:
        rows = numbers_of(reports, reports.channels, reports.domain, as_answers=self.as_answers)
        count = np.bincount(rows.question, minlength=reports.n_questions)
        value = np.clip(_middles(rows, count), *bounds_of(reports.domain))
        squares = sums(rows.question, (rows.value - value[rows.question]) ** 2, reports.n_questions)
        freedom = np.maximum(count - 1.0, 0.0)
        spread = shrunk(squares, freedom, pooled(squares, freedom, reports.domain))
        # A median of levels is a level (or between two): the truth may lie half a step beside it.
        variance = _WIDER * spread / np.maximum(count, 1) + half_step(reports.domain) ** 2 / 3
        return with_interval(value, variance, freedom, count > 0, reports.domain)


def _middles(rows: Numbers, count: Array) -> NDArray[np.float64]:
    if not len(rows.value):
        return np.zeros(len(count))
    ranked = rows.value[np.lexsort((rows.value, rows.question))]
    first = np.cumsum(count) - count
    lower = np.minimum(first + np.maximum(count - 1, 0) // 2, len(ranked) - 1)
    upper = np.minimum(first + count // 2, len(ranked) - 1)
    middles: NDArray[np.float64] = (ranked[lower] + ranked[upper]) / 2
    return middles


def _debiased(reports: Reports) -> dict[str, Array]:
    channels = table_channels(reports.channels)
    shares = on_simplex(votes_of(reports, channels, reports.n_questions, reports.domain.size))
    numbers = reports.domain.numbers
    order = np.argsort(numbers)
    below = np.cumsum(shares[:, order], axis=1)
    # Shares that reach one half exactly leave the middle open: the average of both sides, as for plain answers.
    lower = numbers[order][np.argmax(below >= 0.5 - 1e-9, axis=1)]
    upper = numbers[order][np.argmax(below > 0.5 + 1e-9, axis=1)]
    value = (lower + upper) / 2
    answered = np.bincount(reports.question, minlength=reports.n_questions) > 0
    # Woodruff's interval: the share of answers below the median is known up to its own noise; read both ends back.
    worth = np.maximum(effective_counts(reports, channels, reports.n_questions), 1e-9)
    reach = QUANTILE * np.sqrt(0.25 / worth)[:, None]
    half = half_step(reports.domain)
    low, high = bounds_of(reports.domain)
    below_low = numbers[order][np.argmax(below >= 0.5 - reach, axis=1)] - half
    above = below >= 0.5 + reach
    above_high = np.where(above.any(axis=1), numbers[order][np.argmax(above, axis=1)] + half, high)
    return {
        "value": np.where(answered, value, np.nan),
        "confidence": np.where(answered, LEVEL, 0.0),
        "low": np.where(answered & (reach[:, 0] < 0.5), np.clip(below_low, low, high), low),
        "high": np.where(answered, np.clip(above_high, low, high), high),
    }
