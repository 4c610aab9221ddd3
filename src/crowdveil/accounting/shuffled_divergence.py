"""The hockey-stick divergence of a shuffled table, from above: what its reader can learn about one person.

The reader may know which of the other reports were drawn from the blanket (`privacy_blanket`) and the value of each
that was not. C ~ Bin(n − 1, 2r + s) blanket reports remain, and with the person's own they are N = C + 1 reports from
Q₀, Q₁ and Q, in unknown order. Let m of them be from Q₀ or Q₁, and a from Q₀. The number m tells nothing about the
answer, and with π = P(own report is among the m) and c = (p − q)/(p + q)

    P(a | m) = Bin(m, ½)(a)·(1 + κ·(a − m/2)),   Q(a | m) = Bin(m, ½)(a)·(1 − κ·(a − m/2)),   κ = 2·π·c/m,

which is the same in both directions. Hence δ(ε) = E Σ_a max(0, P − e^ε·Q) over C and m. For k-ary randomised response
(a, m − a, C) are the counts of the two answers among the blanket reports, and their number.

Everything is rounded up. More blanket reports never tell more (whoever has fewer can add one), nor does a larger m
at the same π or a smaller π at the same m: ranges of C and m are therefore counted at their worst end. What is cut off
a tail, at most `cut` by Bernstein's inequality, is added to δ. Doubles are multiplied by a bound of their error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crowdveil.accounting.privacy_blanket import Blanket
from crowdveil.exact import exp_down, exp_up, fraction_up

# For more people the bound of so many holds, since others who are not counted can only hide more.
MAX_PEOPLE = 10**7
_BINS = 256
# Of δ, what one cut may add; far below what a printed digit shows.
_CUT = 1e-6
_SMALLEST_CUT = 1e-30
_UNIT_ROUNDOFF = 2.0**-53
# Operations on one term of a running product and of a sum; five are needed.
_ROUNDINGS = 20
_FLOAT_SLACK = 1e-12
# A threshold that is so near an integer is tried on both sides of it.
_NEAR_INTEGER = 1e-6
_PRECISION = 1e-6


def shuffled_epsilon(blankets: Sequence[Blanket], n: int, delta: float, known_epsilon: float) -> float:
    """The smallest ε at δ that all these pairs of answers have among n people, at most the one that is known."""
    epsilon = 0.0
    for blanket in blankets:
        if blanket.clone == 0:
            return known_epsilon
        divergence = ShuffledDivergence(blanket, n, cut=_cut(delta))
        if divergence(epsilon) <= delta:
            continue
        if divergence(known_epsilon) > delta:
            return known_epsilon
        low, high = epsilon, known_epsilon
        while high - low > _PRECISION * high:
            middle = (low + high) / 2
            low, high = (low, middle) if divergence(middle) <= delta else (middle, high)
        epsilon = high
    return epsilon


def reaches(blankets: Sequence[Blanket], n: int, epsilon: float, delta: float) -> bool:
    """Whether all these pairs of answers have (ε, δ) among n people."""
    return all(
        blanket.clone > 0 and ShuffledDivergence(blanket, n, cut=_cut(delta))(epsilon) <= delta for blanket in blankets
    )


def _cut(delta: float) -> float:
    return max(_CUT * delta, _SMALLEST_CUT)


class ShuffledDivergence:
    """δ(ε), from above, of one pair of answers among n people."""

    def __init__(self, blanket: Blanket, n: int, *, cut: float) -> None:
        self._lost = 6 * cut
        n = min(n, MAX_PEOPLE)
        blanket_share = 2 * blanket.clone + blanket.common
        starts, masses = _bin_counts(n - 1, blanket_share, cut)
        self._rows, self._masses, self._slopes, pairs = _cells(blanket, starts, masses, cut)
        self._first, self._mass, self._moment = _upper_halves(pairs, cut)
        self._half = pairs / 2

    def __call__(self, epsilon: float) -> float:
        ratio_up, ratio_down = fraction_up(exp_up(epsilon)), -fraction_up(-exp_down(epsilon))
        # P − e^ε·Q = Bin·(κ·(1 + e^ε)·(a − m/2) − (e^ε − 1)) is positive above m/2 + tanh(ε/2)/κ.
        threshold = self._half[self._rows] + math.tanh(epsilon / 2) / self._slopes
        last = self._mass.shape[1] - 1
        index = np.clip(np.ceil(threshold - _NEAR_INTEGER) - self._first[self._rows], 0, last).astype(np.int64)
        largest = np.zeros(len(index))
        for start in (index, np.minimum(index + 1, last)):
            gain = self._slopes * (1 + ratio_up) * self._moment[self._rows, start]
            largest = np.maximum(largest, gain - (ratio_down - 1) * self._mass[self._rows, start])
        return float(self._masses @ largest) * (1 + _FLOAT_SLACK) + self._lost


def _binomial(n: int, probability: Fraction, cut: float) -> tuple[int, NDArray[np.float64]]:
    """The lowest count and upper bounds of the probabilities from there on; each tail left out is at most `cut`."""
    if probability == 1 or n == 0:
        return n, np.ones(1)
    reach = _reach(float(n * probability * (1 - probability)), cut)
    mean = float(n * probability)
    low, high = max(0, math.floor(mean - reach)), min(n, math.ceil(mean + reach))
    odds, mode = float(probability / (1 - probability)), min(max(round(mean), low), high)
    up, down = np.arange(mode, high, dtype=np.float64), np.arange(mode, low, -1, dtype=np.float64)
    above = np.cumprod((n - up) / (up + 1) * odds)
    below = np.cumprod(down / (n - down + 1) / odds)
    weights = np.concatenate([below[::-1], [1.0], above])
    # Divided by the sum of what is not cut off, so never below the probability.
    return low, weights / weights.sum() * (1 + _slack(len(weights)))


def _reach(variance: float, cut: float) -> float:
    """Bernstein: P(|X − mean| ≥ t) ≤ cut on each side, with t²/(2·(variance + t/3)) = ln(1/cut)."""
    logarithm = -math.log(cut)
    return (logarithm / 3 + math.sqrt(logarithm**2 / 9 + 2 * logarithm * variance)) * (1 + _FLOAT_SLACK)


def _slack(length: int) -> float:
    return _ROUNDINGS * (length + 1) * _UNIT_ROUNDOFF


def _bin_counts(n: int, probability: Fraction, cut: float) -> tuple[list[int], NDArray[np.float64]]:
    """C in at most 256 ranges: the fewest of each range, and its probability."""
    low, masses = _binomial(n, probability, cut)
    starts = np.arange(0, len(masses), math.ceil(len(masses) / _BINS))
    return [low + int(start) for start in starts], np.add.reduceat(masses, starts) * (1 + _slack(len(masses)))


def _cells(
    blanket: Blanket, starts: Sequence[int], masses: NDArray[np.float64], cut: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Ranges of m for each C: row of the range, probability and largest κ; and the fewest m of each row."""
    pair_share = 2 * blanket.clone / (2 * blanket.clone + blanket.common)
    own, advantage = fraction_up(blanket.own), fraction_up(blanket.advantage)
    share, rest = float(pair_share), float(1 - pair_share)
    windows = [_binomial(count, pair_share, cut) for count in starts]
    lowest = windows[0][0]
    highest = max(low + len(window) for low, window in windows)
    width = math.ceil((highest - lowest + 1) / _BINS)
    rows, weights, slopes = [], [], []
    for count, mass, (low, window) in zip(starts, masses, windows, strict=True):
        m = np.arange(low, low + len(window) + 1)
        # The own report is among the m, or not: a mixture that both answers share.
        probability = own * np.append(0.0, window) + float(1 - blanket.own) * np.append(window, 0.0)
        row = (m - lowest) // width
        used = np.unique(row)
        largest = np.minimum(lowest + (used + 1) * width - 1, m[-1]).astype(np.float64)
        # π = (p + q)·m·(1 − θ) / ((p + q)·m·(1 − θ) + (1 − p − q)·(N − m)·θ), with θ = 2r/(2r + s).
        inside, outside = own * largest * rest, float(1 - blanket.own) * (count + 1 - largest) * share
        among = np.divide(inside, inside + outside, out=np.ones_like(inside), where=inside + outside > 0)
        fewest = np.maximum(lowest + used * width, 1)
        rows.append(used)
        weights.append(mass * np.bincount(row - used[0], probability)[used - used[0]] * (1 + _slack(len(m))))
        slopes.append(2 * np.minimum(among * (1 + _FLOAT_SLACK), 1.0) * advantage / fewest * (1 + _FLOAT_SLACK))
    all_rows, all_weights, all_slopes = map(np.concatenate, (rows, weights, slopes))
    matters = all_slopes > 0
    pairs = np.maximum(lowest + np.arange(int(all_rows.max()) + 1) * width, 1).astype(np.float64)
    return all_rows[matters], all_weights[matters], all_slopes[matters], pairs


def _upper_halves(
    m: NDArray[np.float64], cut: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """For each m the first a ≥ m/2, and from each a on Σ Bin(m, ½), rounded down, and Σ (a − m/2)·Bin, rounded up."""
    first = np.ceil(m / 2)
    length = math.ceil(min(m.max() / 2, _reach(m.max() / 4, cut))) + 2
    a = first[:, None] + np.arange(length - 1)
    steps = np.maximum(m[:, None] - a, 0.0) / (a + 1)
    weights = np.cumprod(np.concatenate([np.ones((len(m), 1)), steps], axis=1), axis=1)
    sums = weights.sum(axis=1)
    # The lower half mirrors the upper one; of an even m the middle stands in both.
    weights /= (2 * sums - (m % 2 == 0) * weights[:, 0])[:, None]
    distance = np.arange(length) + (first - m / 2)[:, None]
    slack = _slack(length)
    mass = weights[:, ::-1].cumsum(axis=1)[:, ::-1] * (1 - slack - 2 * cut)
    moment = (weights * distance)[:, ::-1].cumsum(axis=1)[:, ::-1] * (1 + slack)
    nothing = np.zeros((len(m), 1))
    return first, np.append(mass, nothing, axis=1), np.append(moment, nothing, axis=1)
