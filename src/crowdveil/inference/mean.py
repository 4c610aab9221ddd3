"""Mean: the average of the reports as unbiased numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdveil.estimate import Estimate
from crowdveil.inference.base import Method
from crowdveil.inference.fitting import from_columns
from crowdveil.inference.floors import told_numbers
from crowdveil.inference.numbers import centre, numbers_of, pooled, shrunk, sums, with_interval
from crowdveil.reports import Reports


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(Method):
    """Every report counts the same; with `as_answers` the channel's noise is left in, as the papers do.

    >>> from crowdveil import Answers, Reports, Scale
    >>> rows = [("ada", "q1", 1), ("bob", "q1", 2), ("cy", "q1", 5)]
    >>> Mean().fit(Reports.unprotected(Answers.from_rows(rows, Scale(1, 5)))).values()
    [2.6666666666666665]
    """

    name: ClassVar[str] = "mean"
    summary: ClassVar[str] = "the average of the reports as unbiased numbers"
    numeric: ClassVar[bool] = True

    as_answers: bool = False

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        rows = numbers_of(reports, reports.channels, reports.domain, as_answers=self.as_answers)
        n_questions = reports.n_questions
        count = sums(rows.question, None, n_questions)
        mass = sums(rows.question, rows.share, n_questions)
        value = centre(sums(rows.question, rows.value, n_questions), mass, reports.domain)
        squares = sums(rows.question, (rows.value - rows.share * value[rows.question]) ** 2, n_questions)
        freedom = np.maximum(count - 1, 0)
        spread = shrunk(squares, freedom, pooled(squares, freedom, reports.domain))
        variance = spread * count / np.maximum(mass, 1e-6) ** 2
        columns = with_interval(value, variance, freedom, count > 0, reports.domain)
        return told_numbers(from_columns(self, reports, columns), reports, as_answers=self.as_answers)
