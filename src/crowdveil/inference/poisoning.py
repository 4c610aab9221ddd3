"""Poisoning: the most that colluding workers can move the shares that `frequency` estimates.

A forged report does not come from an answer through the channel: a colluder sends the report whose votes serve best. In
k-ary randomised response, with p the probability of the own answer and q that of each other one, a forged report of
an option weighs (1 − q)/(p − q) votes for it and −q/(p − q) for the others. If a share β of the reports to a question
is forged, an estimated share s becomes (1 − β)·s + β·(mean of the forged votes), so it moves by at most
β · max |vote − s|. The bound is exact: colluders who agree on that report reach it (Cheu, Smith & Ullman 2021).

Where participation is protected, the share is a ratio of votes to answers, and colluders move both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import Domain
from crowdveil.errors import InputError
from crowdveil.inference.methods.frequency import unbiased_shares
from crowdveil.inference.observations.debiasing import plain_votes, table_channels
from crowdveil.inference.observations.numeric import count_by_channel
from crowdveil.reports import Reports

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class PoisoningBounds:
    """Shares before projection to the simplex, and the least and largest that colluders could make of them.

    `share`, `low` and `high` are question × option. A question without reports has NaN.
    """

    questions: NDArray[Any]
    domain: Domain
    colluders: float
    share: Array
    low: Array
    high: Array

    @property
    def largest_shift(self) -> Array:
        """How far each share can be moved at most."""
        shift: Array = np.maximum(self.high - self.share, self.share - self.low)
        return shift


def poisoning_bounds(reports: Reports, colluders: float) -> PoisoningBounds:
    """What becomes of the shares if workers join who make up a share `colluders` of each question's reports.

    Colluders know the other reports and use any of the table's channels.

    >>> from crowdveil import Answers, Choices
    >>> rows = [(n, "q", ("no", "yes")[n % 2]) for n in range(100)]
    >>> bounds = poisoning_bounds(Reports.unprotected(Answers.from_rows(rows, Choices(("no", "yes")))), 0.05)
    >>> bounds.low.round(3).tolist(), bounds.high.round(3).tolist()
    ([[0.475, 0.475]], [[0.525, 0.525]])
    """
    if not 0 < colluders < 1:
        raise InputError(f"colluders must be a share above 0 and below 1; got {colluders!r}", fix="for example 0.05")
    channels, k = table_channels(reports.channels), reports.domain.size
    counts = count_by_channel(reports, len(channels))
    votes = plain_votes(reports, channels, reports.n_questions, k)
    share, _ = unbiased_shares(votes, counts, channels)
    total = counts.sum(axis=0)
    hidden = any(channel.protects_participation for channel in channels)
    # After the attack there are total / (1 − β) reports, of which `unbiased_shares` takes at least one for an answer.
    fewest = np.where(total > 0, (1 - colluders) / np.maximum(total, 1), 1.0) if hidden else np.ones(len(total))
    honest_mass = votes.sum(axis=1) / np.maximum(total, 1) if hidden else np.ones(len(total))
    low, high = np.empty_like(share), np.empty_like(share)
    forged = np.concatenate([channel.votes[:, :k] for channel in channels])
    forged_mass = forged.sum(axis=1) if hidden else np.ones(len(forged))
    for option in range(k):
        points = np.unique(np.column_stack([forged_mass, forged[:, option]]).round(12), axis=0)
        mass = (1 - colluders) * honest_mass[:, None] + colluders * points[:, 0]
        vote = (1 - colluders) * (votes[:, option] / np.maximum(total, 1))[:, None] + colluders * points[:, 1]
        attacked = _ratios(vote, mass, np.minimum(fewest, 1.0)) if hidden else vote
        low[:, option], high[:, option] = attacked.min(axis=1), attacked.max(axis=1)
    asked = (total > 0)[:, None]
    parts = (np.where(asked, each, np.nan) for each in (share, low, high))
    return PoisoningBounds(reports.questions, reports.domain, colluders, *parts)


def _ratios(vote: Array, mass: Array, fewest: Array) -> Array:
    """Votes over answers, for every report and for every mixture of two at which the number of answers is cut.

    The ratio is linear or linear-fractional between the two cuts (no answers, all answers) and beyond them, so its
    extremes over all mixtures lie at one report or where a line between two of them meets a cut.
    """
    n_questions = len(vote)
    candidates = [vote / np.clip(mass, fewest[:, None], 1.0)]
    for cut in (fewest[:, None, None], np.ones((n_questions, 1, 1))):
        start, end = mass[:, :, None], mass[:, None, :]
        crosses = (start - cut) * (end - cut) < 0
        weight = np.divide(cut - start, end - start, out=np.zeros(crosses.shape), where=crosses)
        mixed = (vote[:, :, None] * (1 - weight) + vote[:, None, :] * weight) / cut
        mixed = np.where(crosses, mixed, candidates[0][:, :, None])
        candidates.append(mixed.reshape(n_questions, -1))
    return np.concatenate(candidates, axis=1)
