"""A study before it starts: everything the planner needs to know about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.domain import Domain, Scale
from crowdveil.guarantee import Epsilon
from crowdveil.plan.crowds import CrowdSkill
from crowdveil.validation import Count, Rule, Share, check_settings

Floats = NDArray[np.float64]
_POINTS_PER_LEVEL = 16
_MOST_POINTS = 301
_BEYOND = 0.4
_TIMES = 2
_MAY_BE_NONE = Rule(f"from 0 to {10**9}", lambda workers: 0 <= workers <= 10**9)


@dataclass(frozen=True, slots=True, eq=False)
class CrowdPart:
    """The workers of a study who report through the same channel: everybody at one level of privacy."""

    channel: Channel
    n_workers: Annotated[int, _MAY_BE_NONE]

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """`n_workers` join the study; each answers a `share` of its `n_questions`; `epsilon` is per report.

    Truths are taken to be spread evenly: over the options, or over the range of the scale.
    """

    domain: Domain
    epsilon: Epsilon
    n_workers: Count
    share: Share
    crowd: CrowdSkill
    n_questions: Count = 100
    protect_participation: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    def with_workers(self, n_workers: int) -> Setting:
        return replace(self, n_workers=n_workers)

    def with_epsilon(self, epsilon: float) -> Setting:
        return replace(self, epsilon=epsilon)

    @property
    def reports_per_question(self) -> float:
        return self.n_workers if self.protect_participation else self.n_workers * self.share

    def reports_per_worker(self, channel: Channel) -> float:
        return self.n_questions if channel.protects_participation else max(self.n_questions * self.share, 1)

    @property
    def truths(self) -> Floats:
        """What a reader holds possible: the options' codes, or an even grid that reaches beyond the scale.

        Answers are clipped to the scale, truths need not be; a reader cannot know that ours lie inside.
        """
        if not isinstance(self.domain, Scale):
            return np.arange(self.domain.size, dtype=float)
        width, beyond = self.domain.range, _BEYOND * self.domain.range
        n_points = min(round((1 + 2 * _BEYOND) * _POINTS_PER_LEVEL * (self.domain.size - 1)) + 1, _MOST_POINTS)
        edges = np.linspace(-beyond, width + beyond, n_points + 1) + float(self.domain.low)
        points: Floats = (edges[1:] + edges[:-1]) / 2
        return points

    @property
    def prior(self) -> Floats:
        """The reader's prior: even over options, and on scales the normal law of the same mean and variance as ours."""
        if not isinstance(self.domain, Scale):
            return np.full(self.domain.size, 1 / self.domain.size)
        middle = float(self.domain.low + self.domain.high) / 2
        weights = np.exp(-((self.truths - middle) ** 2) / (2 * self.domain.range**2 / 12))
        prior: Floats = weights / weights.sum()
        return prior

    @property
    def truth_grid_inside(self) -> NDArray[np.int64]:
        """The truths that are really asked about, all equally often: those inside the domain."""
        if not isinstance(self.domain, Scale):
            return np.arange(self.domain.size)
        inside = (self.truths >= float(self.domain.low)) & (self.truths <= float(self.domain.high))
        return np.flatnonzero(inside)

    @property
    def sampled_truths(self) -> Floats:
        """Truths as evenly spread as `truth_grid_inside`, but anywhere between its points: no grid is nature's."""
        if not isinstance(self.domain, Scale):
            return self.truths
        cells = np.arange(_TIMES * len(self.truth_grid_inside))
        # Steps of the golden ratio fall everywhere within a cell, and never into a rhythm.
        within = cells * (math.sqrt(5) - 1) / 2 % 1
        truths: Floats = float(self.domain.low) + self.domain.range * (cells + within) / len(cells)
        return truths

    @property
    def baseline_error(self) -> float:
        """The error of not looking at any report: a guess, or the middle of the scale."""
        if isinstance(self.domain, Scale):
            return self.domain.range / 4
        return 1 - 1 / self.domain.size

    @property
    def largest_error(self) -> float:
        """What no estimate inside the domain passes: the range of the scale, or 1 for rates and shares."""
        return self.domain.range if isinstance(self.domain, Scale) else 1.0

    def reports_given_truth(self, channel: Channel) -> Floats:
        """P(report | truth) of each class of workers: classes × truths × outputs."""
        return self.apply_channel(channel, self.crowd.answers(self.domain, self.truths))

    def apply_channel(self, channel: Channel, answers: Floats) -> Floats:
        """Laws of answers, levels last, as laws of what is reported; ∅ reports too where the channel hides it."""
        reported: Floats = answers @ channel.table[: channel.n_levels]
        if channel.protects_participation:
            reported = self.share * reported + (1 - self.share) * channel.table[-1]
        return reported
