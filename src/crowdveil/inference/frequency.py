"""Frequency: how many of the population hold each opinion, by exact inversion of the channels (Warner 1965)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.estimate import Estimate
from crowdveil.inference.base import WithoutIteration
from crowdveil.inference.blocks import context_of
from crowdveil.inference.finishing import LEVEL, QUANTILE, chosen
from crowdveil.inference.fitting import estimate_of
from crowdveil.inference.model import Columns, Context, Rows
from crowdveil.inference.questionwise import QuestionModel
from crowdveil.inference.votes import plain_votes, table_channels
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
        columns = self.columns(reports, context_of(reports))
        bounds = {"low": columns["lows"], "high": columns["highs"]}
        return estimate_of(self, reports, columns, level=LEVEL, parameters=bounds)

    def columns(self, rows: Rows, context: Context) -> Columns:
        """The shares with their bounds, `lows` and `highs`, and the commonest option."""
        channels = table_channels(context.channels)
        n_questions, n_options = rows.n_questions, context.domain.size
        counts = np.stack(
            [np.bincount(rows.question[rows.channel == c], minlength=n_questions) for c in range(len(channels))]
        ).astype(np.float64)
        votes = plain_votes(rows, channels, n_questions, n_options)
        shares, mass = _shares(votes, counts, channels)
        spread = np.sqrt(_variance(shares, mass, counts, channels))
        low, high = (np.clip(shares + side * QUANTILE * spread, 0.0, 1.0) for side in (-1, 1))
        projected = project(shares)
        answered = counts.sum(axis=0) > 0
        value, share = chosen(projected, answered)
        each, top = np.arange(n_questions), np.maximum(value, 0)
        # The projection may leave the interval of the raw share, which is then stretched to hold it.
        low, high = np.minimum(low, projected), np.maximum(high, projected)
        return {
            "value": value,
            "confidence": share,
            "low": np.where(answered, low[each, top], 0.0),
            "high": np.where(answered, high[each, top], 1.0),
            "posterior": projected,
            "lows": low,
            "highs": high,
        }


def _shares(votes: Array, counts: Array, channels: tuple[Channel, ...]) -> tuple[Array, Array]:
    """Unbiased shares among those who answered, and how many did; even shares where that cannot be said."""
    hidden = any(channel.protects_participation for channel in channels)
    total = counts.sum(axis=0)
    mass = np.clip(votes.sum(axis=1), np.minimum(1.0, total), total) if hidden else total
    even = np.full_like(votes, 1.0 / votes.shape[1])
    return np.divide(votes, mass[:, None], out=even, where=mass[:, None] > 0), mass


def _variance(shares: Array, mass: Array, counts: Array, channels: tuple[Channel, ...]) -> Array:
    """The variance of each share under the shares found, question × option.

    A share is Σ votes / Σ answered, so its error is Σ (vote − share·answered) / Σ answered (delta method). Shares are
    drawn a little towards even ones first, so that a question with few reports does not look certain.
    """
    n_options = shares.shape[1]
    smoothed = (project(shares) * mass[:, None] + 1) / (mass[:, None] + n_options)
    given = np.divide(mass, counts.sum(axis=0), out=np.ones_like(mass), where=counts.sum(axis=0) > 0)
    total = np.zeros_like(shares)
    for count, channel in zip(counts, channels, strict=True):
        votes = channel.votes[:, :n_options]
        answered = votes.sum(axis=1) if channel.protects_participation else np.ones(len(votes))
        law = smoothed
        if channel.protects_participation:
            law = np.concatenate([smoothed * given[:, None], 1 - given[:, None]], axis=1)
        chance = law @ channel.table
        second = chance @ votes**2 - 2 * smoothed * (chance @ (votes * answered[:, None]))
        second += smoothed**2 * (chance @ answered**2)[:, None]
        total += count[:, None] * np.maximum(second, 0.0)
    variance: Array = np.divide(total, mass[:, None] ** 2, out=np.ones_like(total), where=mass[:, None] > 0)
    return variance


def project(shares: Array) -> Array:
    """The nearest point of the simplex, row by row (Duchi et al. 2008)."""
    falling = -np.sort(-shares, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, shares.shape[1] + 1)
    last = (falling > excess).sum(axis=1) - 1
    nearest: Array = np.maximum(shares - np.take_along_axis(excess, last[:, None], axis=1), 0.0)
    return nearest
