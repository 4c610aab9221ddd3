"""Whether a crowd leans to an option or that option is the truth more often: the third moments of the votes tell.

An option named too often may be named by a crowd that leans to it, or be the truth of most questions. Means and
variances of the votes look alike in both cases. But the votes of different people on one question go together, high
where the option is the truth and low where it is not, and which of the two is the rarer shows in their skewness
(Pearson 1894 told two mixed kinds of crabs apart so). Noise has no part in it: reports of different people err apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.inference.channel_layout import MessageState
from crowdveil.inference.counting import summed
from crowdveil.inference.model import Statistics
from crowdveil.inference.votes import channel_worth

Array = NDArray[Any]

EITHER, SPREAD = 1 / 2, 12**-0.5
"""Mean and standard deviation of the part that is due to the classes, before asking the reports: any is as likely."""
_LEAST_ABILITY = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class VoteTable:
    """Unbiased `votes`, symbol × option, and how much each symbol's channel counts beside the clearest one."""

    votes: NDArray[np.float64]
    weight: NDArray[np.float64]

    def count(self, state: MessageState) -> Statistics:
        """The sums whose quotient is the share of each option among the answers."""
        seen = np.bincount(state.symbol, minlength=len(self.weight)) * self.weight
        return {"named": seen @ self.votes}

    def moments(self, state: MessageState, share: Array, named: Array) -> Statistics:
        """Products of the votes of two and three different people on one question, around the mean: sums that add.

        Elementary symmetric sums leave out what a report has in common with itself, noise above all.
        """
        n_questions, mean = len(state.starts) - 1, _shares(named)
        weights = [self._powers(state, share, None, 0.0, power, n_questions) for power in (1, 2, 3)]
        pairs, triples = _symmetric(*weights)
        found = []
        for option, centre in enumerate(mean):
            sums = [self._powers(state, share, option, centre, power, n_questions) for power in (1, 2, 3)]
            two, three = _symmetric(*sums)
            found.append([_spread(two, pairs), _spread(three, triples)])
        return {"moments": np.array(found)}

    def _powers(
        self, state: MessageState, share: Array, option: int | None, centre: float, power: int, n_questions: int
    ) -> NDArray[np.float64]:
        """Sums over each question's reports of (weight · deviation of the vote)^power; of weight^power without option.

        A report that hides whether there was an answer speaks for an answer only in the worker's share of the cases.
        """

        def term(part: slice) -> Array:
            who, what = share[state.worker[part]], state.symbol[part]
            weight = self.weight[what] * who
            away = weight * who if option is None else weight * (self.votes[what, option] - centre * who)
            return away**power

        return summed(state.question, term, n_questions)


def vote_table(channels: tuple[Channel, ...], n_options: int) -> VoteTable:
    """The tables of the channels one below the other, as symbols count."""
    worth = np.array([channel_worth(channel) for channel in channels])
    return VoteTable(
        np.vstack([channel.votes[:, :n_options] for channel in channels]),
        np.repeat(worth / worth.max(), [len(channel.outputs) for channel in channels]),
    )


def part_of_classes(named: Array, moments: Array) -> float:
    """The part of an uneven count of answers that is due to uneven classes, from 0 to 1; the crowd leans by the rest.

    Both explanations foretell third moments; where the reports' own lie between the two is a regression with one
    coefficient, drawn to what is supposed beforehand as far as it is uncertain. Where neither explanation fits, its
    variance grows by the misfit (Birge 1932).
    """
    third, variance = _quotient(moments[:, 1])
    second, _ = _quotient(moments[:, 0])
    leaning, classes = foretold(_shares(named), float(second.sum()))
    toward, seen = classes - leaning, third - leaning
    precision = np.divide(1.0, variance, out=np.zeros_like(variance), where=variance > 0)
    information = float(precision @ toward**2)
    if information <= 0:
        return EITHER
    slope = float(precision @ (toward * seen)) / information
    # Deviations of all options sum to nothing: as many are free as there are options but one.
    free = (len(third) - 1) / len(third)
    misfit = free * float(precision @ (seen - slope * toward) ** 2) / max(len(third) - 2, 1)
    sure = free * information / max(misfit if len(third) > 2 else 1.0, 1.0)
    before = 1 / SPREAD**2
    return float(np.clip((sure * slope + before * EITHER) / (sure + before), 0.0, 1.0))


def foretold(mean: Array, second: float) -> tuple[Array, Array]:
    """Third moments if the crowd leans and classes are even, and if classes are uneven and nobody leans.

    With ability a and classes π, an option's share is higher by a where it is the truth: it has the variance
    π(1 − π)·a² and the third moment π(1 − π)(1 − 2π)·a³. `second` is the sum of the variances.
    """
    chance, uneven = 1 / len(mean), float(((mean - 1 / len(mean)) ** 2).sum())
    able = _ability(second / (1 - chance))
    leaning = np.full(len(mean), chance * (1 - chance) * (1 - 2 * chance) * able**3)
    # Σ π(1 − π)·a² = a²(1 − 1/k) − Σ (mean − 1/k)², because mean − 1/k = a·(π − 1/k).
    able = _ability((max(second, 0.0) + uneven) / (1 - chance))
    share = np.clip(chance + (mean - chance) / able, 0.0, 1.0)
    return leaning, share * (1 - share) * (1 - 2 * share) * able**3


def _shares(named: Array) -> Array:
    """Parts of the whole; even ones where noise leaves nothing of it."""
    total = float(named.sum())
    return named / total if total > 0 else np.full(len(named), 1 / len(named))


def _ability(square: float) -> float:
    return float(np.clip(np.sqrt(max(square, 0.0)), _LEAST_ABILITY, 1.0))


def _symmetric(first: Array, second: Array, third: Array) -> tuple[Array, Array]:
    """Sums of products over ordered pairs and triples of different reports, from sums of powers (Newton)."""
    return first**2 - second, first**3 - 3 * first * second + 2 * third


def _spread(value: Array, weight: Array) -> list[float]:
    """What a quotient of sums over questions, and its variance, are made of."""
    return [float(each.sum()) for each in (value, weight, value**2, value * weight, weight**2)]


def _quotient(sums: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The quotients of the sums and their variances over questions; nothing is known where the weights are 0."""
    value, weight, squares, mixed, weights = sums.T
    whole = np.where(weight > 0, weight, 1.0)
    mean = np.where(weight > 0, value / whole, 0.0)
    variance = (squares - 2 * mean * mixed + mean**2 * weights) / whole**2
    return mean, np.where((weight > 0) & (variance > 1e-18), variance, np.inf)
