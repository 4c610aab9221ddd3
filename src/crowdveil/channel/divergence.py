"""Exact ε and a rigorous ρ of an integer table: the only place where a privacy loss is computed from weights."""

from __future__ import annotations

import heapq
import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crowdveil.exact import log_up
from crowdveil.progress import report_progress

# Floating-point powers and sums of at most some thousand terms err by far less than this; it is added on top.
_FLOAT_SLACK = 1e-7
_RHO_PRECISION = 1e-4
# Below, logarithms of ratios near 1 run out of digits, and ε²/2 is always an upper bound.
_SMALLEST_SEARCHED = 1e-4
# e^600 is still a double.
_LARGEST_EXPONENT = 600.0


def max_ratio(weights: NDArray[np.uint64]) -> Fraction | None:
    """The largest W[x][y] / W[x'][y]; None when some row can give an output that another cannot (ε = ∞).

    A column of zeros is an output that never happens and says nothing.
    """
    top, bottom = weights.max(axis=0), weights.min(axis=0)
    possible = top > 0
    if np.any(bottom[possible] == 0):
        return None
    return max((Fraction(int(a), int(b)) for a, b in set(zip(top[possible], bottom[possible], strict=True))))


def epsilon_of(weights: NDArray[np.uint64]) -> float:
    """ε = ln max ratio, as the next double upwards."""
    ratio = max_ratio(weights)
    return math.inf if ratio is None else log_up(ratio)


def rho_of(weights: NDArray[np.uint64]) -> float:
    """The smallest ρ we can certify with D_α(row ‖ row') ≤ ρ·α for all α > 1 (zero-concentrated privacy).

    With G(α) the largest Rényi divergence between two rows, f(u) = u·G(1 + u) is convex and f(0) = 0. So between
    two orders f stays below its chord, which bounds G(α)/α from above; beyond the last order G is at most ε.
    Intervals are halved, worst first, until the certified bound is within 0.01 % of a value that is attained.
    """
    epsilon = epsilon_of(weights)
    if math.isinf(epsilon) or epsilon == 0:
        return epsilon
    if epsilon < _SMALLEST_SEARCHED:
        return epsilon**2 / 2 * (1 + _FLOAT_SLACK)
    worst = _WorstRenyi(weights)
    attained = worst(0.0)
    last = min(max(1.0, epsilon / attained), max(1.0, _LARGEST_EXPONENT / epsilon - 1))
    intervals = [(-_chord_bound(worst, 0.0, last), 0.0, last)]
    while True:
        bound, low, high = intervals[0]
        attained = max(attained, worst(high) / (1 + high))
        certified = max(-bound, epsilon / (1 + last))
        if -bound <= max(attained * (1 + _RHO_PRECISION), epsilon / (1 + last)):
            return float(min(certified, epsilon**2 / 2) * (1 + _FLOAT_SLACK))
        heapq.heappop(intervals)
        # Equal steps of asinh √u make equal errors of the chord where G(α)/α is flat.
        middle = math.sinh((math.asinh(math.sqrt(low)) + math.asinh(math.sqrt(high))) / 2) ** 2
        for part in ((low, middle), (middle, high)):
            heapq.heappush(intervals, (-_chord_bound(worst, *part), *part))


def renyi_of(weights: NDArray[np.uint64], alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest Rényi divergence between two rows at each order α > 1, rounded up; never above ε."""
    epsilon = epsilon_of(weights)
    if math.isinf(epsilon) or epsilon == 0:
        return np.full(len(alphas), epsilon)
    worst = _WorstRenyi(weights)
    # Where powers would overflow the divergence has all but reached its limit ε.
    bounds = [worst(float(alpha) - 1) if alpha * epsilon < _LARGEST_EXPONENT else epsilon for alpha in alphas]
    return np.minimum(np.array(bounds) * (1 + _FLOAT_SLACK), epsilon)


def _chord_bound(worst: _WorstRenyi, low: float, high: float) -> float:
    """The largest G(1 + u)/(1 + u) on [low, high] that the convexity of f(u) = u·G(1 + u) leaves possible."""
    slope = (high * worst(high) - low * worst(low)) / (high - low)
    below = max(slope * low - low * worst(low), 0.0)

    def bound(u: float) -> float:
        return slope if u == 0 else (slope * u - below) / (u * (1 + u))

    # The chord over u(1 + u) has its one maximum where slope·u² − 2·below·u − below = 0.
    peak = (below + math.sqrt(below**2 + below * slope)) / slope
    return max(bound(low), bound(min(max(peak, low), high)), bound(high))


class _WorstRenyi:
    """G(1 + u): the largest Rényi divergence of order 1 + u between two rows; at u = 0 the largest KL divergence."""

    def __init__(self, weights: NDArray[np.uint64]) -> None:
        rows = np.unique(weights[:, weights.max(axis=0) > 0], axis=0).astype(np.float64)
        rows /= rows.sum(axis=1, keepdims=True)
        # Each column is divided by its smallest weight: nothing overflows, and the logarithms are small and exact.
        self._floor = rows.min(axis=0)
        self._above = np.log(rows / self._floor)
        self._rows = rows
        self._seen: dict[float, float] = {}

    def __call__(self, u: float) -> float:
        if u not in self._seen:
            self._seen[u] = self._kullback_leibler() if u == 0 else self._renyi(u)
            report_progress("Rényi orders", len(self._seen))
        return self._seen[u]

    def _kullback_leibler(self) -> float:
        own = (self._rows * self._above).sum(axis=1, keepdims=True)
        return float((own - self._rows @ self._above.T).max())

    def _renyi(self, u: float) -> float:
        # Σ p^(1+u) q^(−u) − 1 with p = floor·e^a, q = floor·e^b, written in terms that are all small when ε or u
        # is, so that no digits cancel: Σ p·expm1(ua) + Σ floor·expm1(−ub) + Σ floor·expm1((1+u)a)·expm1(−ub).
        lowered = np.expm1(-u * self._above)
        raised = self._floor * np.expm1((1 + u) * self._above)
        own = (self._rows * np.expm1(u * self._above)).sum(axis=1)
        excess = own[:, None] + (lowered @ self._floor)[None, :] + raised @ lowered.T
        return float(np.log1p(excess.max()) / u)
