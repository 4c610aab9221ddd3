"""Majority: the option with most votes, after the channel's noise has been taken out of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from crowdveil.estimate import Estimate
from crowdveil.inference.base import WithoutIteration
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.estimation import from_columns
from crowdveil.inference.models.question_level import QuestionModel
from crowdveil.inference.observations.debiasing import effective_counts, table_channels, unbiased_votes
from crowdveil.inference.protocols import Closing, Columns, Context, Parameters, Rows, Statistics
from crowdveil.inference.uncertainty.information_floor import choice_judgement, choice_tally
from crowdveil.inference.uncertainty.summaries import choose_map, find_ties, on_simplex, wilson
from crowdveil.reports import Reports

_FEW_TIES = 0.05
"""Up to this share of the questions nothing is said of ties."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Majority(WithoutIteration):
    """Each report counts as the unbiased votes of its channel; a tie goes to the option that stands first.

    >>> from crowdveil import Answers, Choices, Reports
    >>> rows = [("ada", "q1", "yes"), ("bob", "q1", "yes"), ("cy", "q1", "no")]
    >>> Majority().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("no", "yes"))))).values()
    ['yes']
    """

    name: ClassVar[str] = "majority"
    summary: ClassVar[str] = "the option with most votes, the channel's noise taken out"
    shares: ClassVar[bool] = True

    def model(self, context: Context) -> QuestionModel:
        return QuestionModel(context, self)

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        return from_columns(self, reports, self.columns(reports, table_context(reports)))

    def columns(self, rows: Rows, context: Context) -> Columns:
        """The shares of the votes and the option that has most of them."""
        channels = table_channels(context.channels)
        votes = unbiased_votes(rows, channels, rows.n_questions, context.domain.size)
        answered = np.bincount(rows.question, minlength=rows.n_questions) > 0
        shares = on_simplex(votes)
        value, _ = choose_map(votes, answered)
        share = np.where(
            answered, np.take_along_axis(shares, np.maximum(value, 0)[:, None].astype(np.int64), 1)[:, 0], 0.0
        )
        low, high = wilson(share, effective_counts(rows, channels, rows.n_questions))
        return {"value": value, "confidence": share, "low": low, "high": high, "posterior": shares, "votes": votes}

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        answered = columns["value"] >= 0
        ties = {"ties": np.array([find_ties(columns["votes"], answered).sum(), answered.sum()], dtype=np.float64)}
        return choice_tally(rows, columns, context) | ties

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        judgement = choice_judgement(tally, context)
        return Closing(judgement=replace(judgement, warnings=(*judgement.warnings, *_tie_warning(*tally["ties"]))))


def _tie_warning(n_tied: float, n_answered: float) -> tuple[str, ...]:
    """A fixed rule for ties favours one option; nobody should read the values' shares without knowing how often."""
    if n_tied <= _FEW_TIES * n_answered:
        return ()
    return (f"{n_tied:.0f} of {n_answered:.0f} questions are tied and went to the option that stands first",)
