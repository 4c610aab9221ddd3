"""Frequency: how many of the population hold each opinion, by exact inversion of the channels (Warner 1965)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.estimate import Estimate
from crowdveil.inference.base import WithoutIteration
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.estimation import assemble_estimate
from crowdveil.inference.models.question_level import QuestionModel
from crowdveil.inference.observations.debiasing import answering, plain_votes, table_channels
from crowdveil.inference.observations.numeric import count_by_channel
from crowdveil.inference.protocols import Columns, Context, Rows
from crowdveil.inference.uncertainty.proportions import Moments, least_of_chosen, moments, score_interval
from crowdveil.inference.uncertainty.summaries import LEVEL, choose_map
from crowdveil.reports import Reports

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frequency(WithoutIteration):
    """Shares of the options, question by question; `parameters` holds the bounds of every share, not only the value's.

    Nobody is right or wrong here: the posterior columns are shares of the population, the value the commonest option.

    >>> from crowdveil import Answers, Choices, Reports
    >>> rows = [("ada", "q1", "yes"), ("bob", "q1", "yes"), ("cy", "q1", "no"), ("dan", "q1", "yes")]
    >>> estimate = Frequency().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("no", "yes")))))
    >>> estimate.posterior.tolist()
    [[0.25, 0.75]]
    """

    name: ClassVar[str] = "frequency"
    summary: ClassVar[str] = "the share of the population that holds each opinion"
    shares: ClassVar[bool] = True

    def model(self, context: Context) -> QuestionModel:
        return QuestionModel(context, self)

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        columns = self.columns(reports, table_context(reports))
        bounds = {"low": columns["lows"], "high": columns["highs"]}
        return assemble_estimate(self, reports, columns, level=LEVEL, parameters=bounds)

    def columns(self, rows: Rows, context: Context) -> Columns:
        """The shares with their bounds, `lows` and `highs`, and the commonest option."""
        channels = table_channels(context.channels)
        n_questions, n_options = rows.n_questions, context.domain.size
        counts = count_by_channel(rows, len(channels))
        votes = plain_votes(rows, channels, n_questions, n_options)
        shares, mass = unbiased_shares(votes, counts, channels)
        moments, answers = _moments(shares, mass, counts, channels), np.maximum(mass, 1e-12)[:, None]
        low, high = score_interval(votes, answers, moments)
        projected = project(shares)
        answered = counts.sum(axis=0) > 0
        value, share = choose_map(projected, answered)
        each, top = np.arange(n_questions), np.maximum(value, 0)
        # The projection may leave the interval of the raw share, which is then stretched to hold it.
        low, high = np.minimum(low, projected), np.maximum(high, projected)
        least = np.minimum(least_of_chosen(votes, answers, moments, top), low[each, top])
        return {
            "value": value,
            "confidence": share,
            "low": np.where(answered, least, 0.0),
            "high": np.where(answered, high[each, top], 1.0),
            "posterior": projected,
            "lows": low,
            "highs": high,
        }


def unbiased_shares(votes: Array, counts: Array, channels: tuple[Channel, ...]) -> tuple[Array, Array]:
    """Unbiased shares among those who answered, and how many did; even shares where that cannot be said."""
    hidden = any(channel.protects_participation for channel in channels)
    total = counts.sum(axis=0)
    mass = np.clip(votes.sum(axis=1), np.minimum(1.0, total), total) if hidden else total
    even = np.full_like(votes, 1.0 / votes.shape[1])
    return np.divide(votes, mass[:, None], out=even, where=mass[:, None] > 0), mass


def _moments(shares: Array, mass: Array, counts: Array, channels: tuple[Channel, ...]) -> Moments:
    """What the others hold is drawn a little towards even shares, so that few reports do not rule any option out."""
    n_options = shares.shape[1]
    smoothed = (project(shares) * mass[:, None] + 1) / (mass[:, None] + n_options)
    return moments(smoothed, answering(mass, counts, channels, np.ones(len(channels))), counts, channels)


def project(shares: Array) -> Array:
    """The nearest point of the simplex, row by row (Duchi et al. 2008)."""
    falling = -np.sort(-shares, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, shares.shape[1] + 1)
    last = (falling > excess).sum(axis=1) - 1
    nearest: Array = np.maximum(shares - np.take_along_axis(excess, last[:, None], axis=1), 0.0)
    return nearest
