"""Exact ε and a rigorous ρ of an integer table: the only place where a privacy loss is computed from weights."""

from __future__ import annotations

import heapq
import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crowdveil.exact import log_up

# Floating-point powers and sums of some thousand terms near 1 err by far less than this; it is added on top.
_FLOAT_SLACK = 1e-5
_RHO_PRECISION = 1e-4
# Below, divergences drown in the rounding of their sums, and ε²/2 is always an upper bound.
_SMALLEST_SEARCHED = 5e-3
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

    Intervals of α are halved, worst first, until the certified bound is within 0.01 % of a value that is attained;
    beyond the last α the ratio is at most ε/α.
    """
    epsilon = epsilon_of(weights)
    if math.isinf(epsilon) or epsilon == 0:
        return epsilon
    if epsilon < _SMALLEST_SEARCHED:
        return epsilon**2 / 2 * (1 + _FLOAT_SLACK)
    worst = _WorstRenyi(weights)
    attained = worst(1.0)
    last = min(max(2.0, epsilon / attained), max(2.0, _LARGEST_EXPONENT / epsilon))
    intervals = [(-_chord_bound(worst, 1.0, last), 1.0, last)]
    while True:
        bound, low, high = intervals[0]
        attained = max(attained, worst(high) / high)
        certified = max(-bound, epsilon / last)
        if -bound <= max(attained * (1 + _RHO_PRECISION), epsilon / last):
            break
        heapq.heappop(intervals)
        middle = math.sqrt(low * high)
        heapq.heappush(intervals, (-_chord_bound(worst, low, middle), low, middle))
        heapq.heappush(intervals, (-_chord_bound(worst, middle, high), middle, high))
    return float(min(certified, epsilon**2 / 2) * (1 + _FLOAT_SLACK))


def renyi_of(weights: NDArray[np.uint64], alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest Rényi divergence between two rows at each order α > 1, rounded up; never above ε."""
    epsilon = epsilon_of(weights)
    if math.isinf(epsilon) or epsilon == 0:
        return np.full(len(alphas), epsilon)
    worst = _WorstRenyi(weights)
    # Beyond e^500 powers overflow, and the divergence has all but reached its limit ε.
    bounds = [worst(float(alpha)) if alpha * epsilon < 500 else epsilon for alpha in alphas]
    return np.minimum(np.array(bounds) * (1 + _FLOAT_SLACK), epsilon)


def _chord_bound(worst: _WorstRenyi, low: float, high: float) -> float:
    """An upper bound of G(α)/α on [low, high], G being the largest Rényi divergence between two rows.

    With t = α − 1, K(t) = t·G(1 + t) is a maximum of cumulant functions, so it is convex and lies below its chord
    A + B·t, where A ≤ 0 because K(0) = 0. Hence G/α ≤ (A + B·t) / (t·(1 + t)) = A/t + (B − A)/(1 + t), which
    rises up to t = 1 / (√((B − A) / −A) − 1) and then falls.
    """
    start, end = low - 1, high - 1
    first = start * worst(low)
    slope = (end * worst(high) - first) / (end - start)
    intercept = first - slope * start
    if intercept >= 0:
        return first / (start * low) if start > 0 else slope
    peak = 1 / (math.sqrt((slope - intercept) / -intercept) - 1)
    best = min(max(peak, start), end)
    return (intercept + slope * best) / (best * (1 + best))


class _WorstRenyi:
    """G(α): the largest Rényi divergence between two rows; at α = 1 the largest KL divergence."""

    def __init__(self, weights: NDArray[np.uint64]) -> None:
        rows = np.unique(weights[:, weights.max(axis=0) > 0], axis=0).astype(np.float64)
        self._log = np.log(rows / rows.sum(axis=1, keepdims=True))
        # Each column is divided by its smallest weight, so that no power overflows or vanishes.
        self._log_floor = self._log.min(axis=0)
        self._seen: dict[float, float] = {}

    def __call__(self, alpha: float) -> float:
        if alpha not in self._seen:
            self._seen[alpha] = self._kullback_leibler() if alpha == 1 else self._renyi(alpha)
        return self._seen[alpha]

    def _kullback_leibler(self) -> float:
        rows = np.exp(self._log)
        entropy = (rows * self._log).sum(axis=1, keepdims=True)
        return float((entropy - rows @ self._log.T).max())

    def _renyi(self, alpha: float) -> float:
        above = self._log - self._log_floor
        raised = np.exp(alpha * above)
        lowered = np.exp(self._log_floor - (alpha - 1) * above)
        return float(np.log((raised @ lowered.T).max()) / (alpha - 1))
