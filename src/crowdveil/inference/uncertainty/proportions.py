"""Intervals of shares: all that a score test does not refuse (Wilson 1927), its skewness taken into account.

A normal interval around a share takes its variance from the share that was found. With few reports that is often 0 or
far from the true one, and reports of a rare option are skewed. A test asks at every share what its own variance and
skewness would be (Cornish & Fisher 1938).

Through a channel the raw share may lie outside [0, 1], so far that the test refuses every share and nothing is left.
The test is therefore one of the raw share moved to the nearest end of [0, 1] (Mandelkern & Schultz 2000). That never
moves it away from the true share, so coverage does not fall, and the interval has the width of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from crowdveil.channel import Channel
from crowdveil.inference.uncertainty.summaries import LEVEL, QUANTILE

Array = NDArray[Any]
_STEPS = 12


@dataclass(frozen=True, slots=True)
class Moments:
    """Variance and third moment of Σ (vote − share · answered) as polynomials of the share; its mean is 0.

    Coefficients are question × option, the constant first.
    """

    variance: tuple[Array, ...]
    third: tuple[Array, ...]

    def of(self, option: Array) -> Moments:
        """Those of one option for each question."""
        parts = (tuple(np.take_along_axis(each, option[:, None], axis=1) for each in part) for part in self._parts)
        return Moments(*parts)

    @property
    def _parts(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        return self.variance, self.third

    def at(self, share: Array) -> tuple[Array, Array]:
        variance, third = (reduce(lambda sum_, each: sum_ * share + each, part[::-1]) for part in self._parts)
        return variance, third


def moments(shares: Array, given: Array, counts: Array, channels: Sequence[Channel]) -> Moments:
    """For questions of which so many reports came through each channel.

    Where participation is hidden, a part `given` of them is an answer. What those who do not hold an option think
    follows from the `shares`.
    """
    variance, third = (
        _expand_moments(2, shares, given, counts, channels),
        _expand_moments(3, shares, given, counts, channels),
    )
    return Moments(variance, third)


def _expand_moments(
    power: int, shares: Array, given: Array, counts: Array, channels: Sequence[Channel]
) -> tuple[Array, ...]:
    """E Σ (vote − share · answered)^power by the binomial theorem, each term a + b · share under that share."""
    moments_by_power = [np.zeros_like(shares) for _ in range(power + 2)]
    for j in range(power + 1):
        sign = math.comb(power, j) * (-1) ** j
        for count, channel in zip(counts[:, :, None], channels, strict=True):
            holder, other = _expected_votes(power - j, j, shares, given[:, None], channel)
            moments_by_power[j] += sign * count * other
            moments_by_power[j + 1] += sign * count * (holder - other)
    return tuple(moments_by_power)


def _expected_votes(i: int, j: int, shares: Array, given: Array, channel: Channel) -> tuple[Array, Array]:
    """E[vote^i · answered^j] of a report whose worker, if anything, holds the option, or any other."""
    n_options, hidden = shares.shape[1], channel.protects_participation
    votes = channel.votes[:, :n_options]
    answered = votes.sum(axis=1, keepdims=True) if hidden else np.ones((len(votes), 1))
    by_input = channel.table @ (votes**i * answered**j)
    diagonal = np.diagonal(by_input[:n_options])
    other = (shares @ by_input[:n_options] - shares * diagonal) / np.maximum(1 - shares, 1e-12)
    if not hidden:
        return np.broadcast_to(diagonal, other.shape), other
    silent = (1 - given) * by_input[-1]
    return given * diagonal + silent, given * other + silent


def score_interval(votes: Array, mass: Array, found: Moments) -> tuple[Array, Array]:
    """The least and the largest share that the votes, out of so many answered, do not refuse."""
    votes = np.clip(votes, 0.0, mass)
    low, high = (_furthest(_Test(votes, mass, found, QUANTILE, side)) for side in (-1, 1))
    return low, high


def least_of_chosen(votes: Array, mass: Array, found: Moments, option: Array) -> Array:
    """The least share of an option that was chosen because of its votes, for each question.

    The largest of many votes is more often too large than any one of them, so all options share the error (Bonferroni).
    """
    quantile = float(ndtri(1 - (1 - LEVEL) / 2 / votes.shape[1]))
    chosen = np.clip(np.take_along_axis(votes, option[:, None], axis=1), 0.0, mass)
    return _furthest(_Test(chosen, mass, found.of(option), quantile, -1))[:, 0]


@dataclass(frozen=True, slots=True)
class _Test:
    votes: Array
    mass: Array
    found: Moments
    quantile: float
    side: int

    def excess(self, share: Array) -> Array:
        """How far the votes lie beyond what such a share allows; it is refused above 0."""
        variance, third = self.found.at(share)
        variance = np.maximum(variance, 1e-12)
        reach, skewed = self.quantile * np.sqrt(variance), (self.quantile**2 - 1) / 6 * third / variance
        # The correction is the first term of a series; on the short side it must not go on for ever.
        allowed = np.maximum(reach - self.side * skewed, reach / 2)
        excess: Array = self.side * (share * self.mass - self.votes) - allowed
        return excess


def _furthest(test: _Test) -> Array:
    """From the share that was found towards 0 or 1, as far as the test goes (false position, the Illinois way)."""
    inside = test.votes / test.mass
    outside = np.full_like(inside, float(test.side > 0))
    below, above = np.minimum(test.excess(inside), -1e-300), test.excess(outside)
    held, last = above <= 0, np.zeros(inside.shape, dtype=np.int8)
    above = np.maximum(above, 1e-300)
    for _ in range(_STEPS):
        middle = inside + (outside - inside) * (below / (below - above))
        excess = test.excess(middle)
        refused = excess > 0
        # An end that stays twice counts half, or one would stay for ever.
        below = np.where(refused, np.where(last > 0, below / 2, below), np.minimum(excess, -1e-300))
        above = np.where(refused, excess, np.where(last < 0, above / 2, above))
        inside, outside = np.where(refused, inside, middle), np.where(refused, middle, outside)
        last = np.where(refused, 1, -1).astype(np.int8)
    return np.where(held, float(test.side > 0), inside)
