"""Majority: the option with most votes, after the channel's noise has been taken out of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdveil.estimate import Estimate
from crowdveil.inference.base import Method
from crowdveil.inference.finishing import chosen, on_simplex, wilson
from crowdveil.inference.fitting import from_columns
from crowdveil.inference.floors import told_choices
from crowdveil.inference.votes import effective_counts, table_channels, votes_of
from crowdveil.reports import Reports


@dataclass(frozen=True, slots=True, kw_only=True)
class Majority(Method):
    """Each report counts as the unbiased votes of its channel; a tie goes to the option that stands first.

    >>> from crowdveil import Answers, Choices, Reports
    >>> rows = [("ada", "q1", "yes"), ("bob", "q1", "yes"), ("cy", "q1", "no")]
    >>> Majority().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("no", "yes"))))).values()
    ['yes']
    """

    name: ClassVar[str] = "majority"
    summary: ClassVar[str] = "the option with most votes, the channel's noise taken out"
    question_local: ClassVar[bool] = True

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        channels = table_channels(reports.channels)
        votes = votes_of(reports, channels, reports.n_questions, reports.domain.size)
        answered = np.bincount(reports.question, minlength=reports.n_questions) > 0
        shares = on_simplex(votes)
        value, _ = chosen(votes, answered)
        share = np.where(
            answered, np.take_along_axis(shares, np.maximum(value, 0)[:, None].astype(np.int64), 1)[:, 0], 0.0
        )
        low, high = wilson(share, effective_counts(reports, channels, reports.n_questions))
        columns = {"value": value, "confidence": share, "low": low, "high": high, "posterior": shares}
        return told_choices(from_columns(self, reports, columns), reports, votes)
