"""From Rényi divergence and ρ (zCDP) to (ε, δ) and back, optimised over the Rényi order (Canonne–Kamath–Steinke 2020).

Pure functions of numbers: the broker's guard and `device/ledger.js` compute the same ones. Each order α > 1 gives a
bound that is true by itself, so a search that stops early is loose, never wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from crowdveil.errors import InputError

DEFAULT_DELTA = 1e-6
"""The δ at which ε is reported under the rules that need one, unless another is given."""
_SEARCH_LOW, _SEARCH_HIGH = math.log(1e-6), math.log(1e12)
_GRID = 64
_GOLDEN = (math.sqrt(5) - 1) / 2
_STEPS = 80
# Logarithms and sums of a few terms err by less than this, relative to the terms.
_FLOAT_SLACK = 1e-12


def epsilon_at_order(alpha: float, divergence: float, delta: float) -> float:
    """ε such that D_α ≤ `divergence` implies (ε, δ).

    δ = e^((α−1)(D − ε)) / α · (1 − 1/α)^(α−1), solved for ε:
    ε = D + ln(1 − 1/α) − (ln δ + ln α) / (α − 1).
    """
    return divergence + math.log1p(-1 / alpha) - (math.log(delta) + math.log(alpha)) / (alpha - 1)


def epsilon_from_rho(rho: float, delta: float = DEFAULT_DELTA) -> float:
    """The smallest ε that ρ-zCDP proves at δ.

    >>> round(epsilon_from_rho(0.3110649), 3)
    4.0
    """
    check_delta(delta)
    if rho == 0 or math.isinf(rho):
        return rho
    smallest = -_largest(lambda alpha: -epsilon_at_order(alpha, alpha * rho, delta))
    return max(0.0, smallest) * (1 + _FLOAT_SLACK)


def delta_from_rho(rho: float, epsilon: float) -> float:
    """The smallest δ that ρ-zCDP proves at ε."""
    if rho == 0 or math.isinf(rho):
        return float(rho > 0)
    log_delta = -_largest(
        lambda alpha: -((alpha - 1) * (alpha * rho - epsilon) - math.log(alpha) + (alpha - 1) * math.log1p(-1 / alpha))
    )
    return min(1.0, math.exp(log_delta) * (1 + _FLOAT_SLACK))


def rho_max(epsilon_max: float, delta_max: float = DEFAULT_DELTA) -> float:
    """The largest ρ whose zCDP guarantee implies (ε_max, δ_max); 0 when δ_max is 0.

    At order α: ε_max = α·ρ + ln(1 − 1/α) − (ln δ + ln α)/(α − 1), solved for ρ and maximised over α.

    >>> round(rho_max(4, 1e-6), 6)
    0.311065
    """
    if delta_max == 0:
        return 0.0
    check_delta(delta_max)
    largest = _largest(lambda alpha: (epsilon_max - epsilon_at_order(alpha, 0.0, delta_max)) / alpha)
    return max(0.0, largest) * (1 - _FLOAT_SLACK)


def check_delta(delta: float) -> float:
    """The one check of a δ: a probability above zero."""
    if not 0 < delta < 1:
        raise InputError(f"delta must be above 0 and below 1; got {delta}", fix="a usual choice is 1e-6")
    return delta


def _largest(of: Callable[[float], float]) -> float:
    """The maximum over α > 1: a grid in ln(α − 1), then a golden-section search around its best point."""

    def at(log_above: float) -> float:
        return of(1 + math.exp(log_above))

    width = (_SEARCH_HIGH - _SEARCH_LOW) / _GRID
    best = max((_SEARCH_LOW + step * width for step in range(_GRID + 1)), key=at)
    low, high = best - width, best + width
    for _ in range(_STEPS):
        lower, upper = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, upper) if at(lower) > at(upper) else (lower, high)
    return max(at(best), at((low + high) / 2))
