"""Mean: the average of the reports as unbiased numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdveil.inference.methods.location import Centring
from crowdveil.inference.models.question_level import Centres, Ratios
from crowdveil.inference.observations.numeric import (
    count_by_channel,
    hides,
    noise_at,
    ratio,
    read_numbers,
    sums,
    tails_at,
)
from crowdveil.inference.protocols import Context, Rows
from crowdveil.inference.uncertainty.fieller import ratio_sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(Centring):
    """Every report counts the same; with `as_answers` the channel's noise is left in, as the papers do.

    >>> from crowdveil import Answers, Reports, Scale
    >>> rows = [("ada", "q1", 1), ("bob", "q1", 2), ("cy", "q1", 5)]
    >>> Mean().fit(Reports.unprotected(Answers.from_rows(rows, Scale(1, 5)))).values()
    [2.6666666666666665]
    """

    name: ClassVar[str] = "mean"
    summary: ClassVar[str] = "the average of the reports as unbiased numbers"

    def centres(self, rows: Rows, context: Context) -> Centres | Ratios:
        """The means; a mean varies as its answers do, the less the more of them there are."""
        numbers = read_numbers(rows, context.channels, context.domain, as_answers=self.as_answers)
        n = rows.n_questions
        if hides(context.channels) and not self.as_answers:
            found = ratio_sums(numbers, numbers.question, (n,), context.domain)
            return Ratios(found, count_by_channel(rows, len(context.channels)))
        count = sums(numbers.question, None, n)
        value = ratio(sums(numbers.question, numbers.value, n), count, context.domain)
        squares = sums(numbers.question, (numbers.value - value[numbers.question]) ** 2, n)
        freedom, scale = np.maximum(count - 1, 0), 1 / np.maximum(count, 1)
        if self.as_answers:
            return Centres(value, squares, freedom, scale, count > 0)
        reports = count_by_channel(rows, len(context.channels))
        noise, tails = (found(value, reports, context.channels, context.domain) for found in (noise_at, tails_at))
        return Centres(value, squares, freedom, scale, count > 0, noise, clipped=True, tails=tails)
