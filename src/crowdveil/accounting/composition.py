"""The composition rules: pure functions from releases to the ε they cost together at δ.

Basic adds ε. zCDP adds ρ. Rényi adds D_α at every order and converts at the best. PLD convolves the loss itself and is
right for a schedule that was fixed beforehand. Every rule is an upper bound; the smallest holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.accounting.conversion import DEFAULT_DELTA, check_delta, epsilon_at_order, epsilon_from_rho
from crowdveil.accounting.events import GaussianLaw, Law, PureLaw
from crowdveil.accounting.gaussian import gaussian_epsilon
from crowdveil.accounting.pld import Pld, compose_all
from crowdveil.accounting.spend import Spend
from crowdveil.exact import fraction_up
from crowdveil.guarantee import Unit

Rule: TypeAlias = Literal["basic", "zcdp", "renyi", "pld"]

ORDERS = 1 + np.geomspace(1e-3, 1e5, 257)
_FINENESS, _GAUSSIAN_INTERVAL, _MOST_POINTS = 0.01, 1e-3, 1 << 20
# Sums of some thousand doubles err by less than this, relatively; and so does the pair of rows that stands for a subset
# channel, some of whose weights, of 2^52 at least, are larger by 1 (ε above 2⁻¹³: 2⁻³⁹).
_FLOAT_SLACK = 1e-11


@dataclass(frozen=True, slots=True)
class Release:
    """`times` independent reports of one law."""

    law: Law
    times: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What releases cost together under one rule."""

    epsilon: float
    delta: float


def releases(spends: Iterable[Spend], unit: Unit) -> tuple[Release, ...]:
    """Protected spends as independent releases: the one place where a law meets its count."""
    protected = [spend for spend in spends if spend.protected]
    if unit == "cell" and not all(spend.law.protects_participation for spend in protected):
        return (Release(PureLaw(math.inf), 1),)
    return tuple(Release(*spend.law.as_independent(spend.count, unit)) for spend in protected)


def basic(parts: Sequence[Release], delta: float = DEFAULT_DELTA) -> Cost:
    """Σε. A Gaussian release has no ε of its own: each is given an equal share of δ."""
    n_gaussian = sum(part.times for part in parts if isinstance(part.law, GaussianLaw))
    share = check_delta(delta) / n_gaussian if n_gaussian else 0.0
    costs = [
        (part.times, gaussian_epsilon(part.law.mu, share) if isinstance(part.law, GaussianLaw) else part.law.epsilon)
        for part in parts
    ]
    return Cost(_sum_up(costs), delta if n_gaussian else 0.0)


def zcdp(parts: Sequence[Release], delta: float = DEFAULT_DELTA) -> Cost:
    """Σρ, converted at the best Rényi order."""
    rho = math.fsum(part.times * part.law.rho for part in parts)
    return Cost(epsilon_from_rho(_up(rho), delta), delta)


def renyi(parts: Sequence[Release], delta: float = DEFAULT_DELTA) -> Cost:
    """Σ D_α at every order, converted at the best one."""
    check_delta(delta)
    total = np.zeros(len(ORDERS))
    for part in parts:
        total += part.times * _divergences(part.law)
    if not parts or total[0] == math.inf:
        return Cost(math.inf if parts else 0.0, delta)
    at_orders = (epsilon_at_order(float(a), float(d), delta) for a, d in zip(ORDERS, total, strict=True))
    return Cost(min(_up(max(0.0, min(at_orders))), _largest_loss(parts)), delta)


@lru_cache(maxsize=256)
def _divergences(law: Law) -> NDArray[np.float64]:
    return law.renyi(ORDERS)


def pld(parts: Sequence[Release], delta: float = DEFAULT_DELTA) -> Cost:
    """The privacy-loss distribution of a schedule that was fixed beforehand. Not for adaptive questions."""
    check_delta(delta)
    mu = math.sqrt(math.fsum(part.times * part.law.mu**2 for part in parts if isinstance(part.law, GaussianLaw)))
    others = [part for part in parts if not isinstance(part.law, GaussianLaw) and part.law.epsilon > 0]
    if not others:
        # Gaussian losses add up to a Gaussian loss: no grid is needed.
        return Cost(gaussian_epsilon(mu, delta) if mu else 0.0, delta)
    if math.isinf(max(part.law.epsilon for part in others)):
        return Cost(math.inf, delta)
    if sum(part.times for part in others) > _MOST_POINTS:
        # Every report needs a step of the grid; for so many the largest loss has to do.
        return Cost(_largest_loss(parts), delta)
    interval = _interval(others, mu)
    grids = [Pld.from_atoms(part.law.atoms(), interval).times(part.times) for part in others]
    total = compose_all([*grids, Pld.gaussian(mu, interval)] if mu else grids, interval)
    return Cost(min(_up(total.epsilon(delta)), _largest_loss(parts)), delta)


def _largest_loss(parts: Sequence[Release]) -> float:
    """No loss is larger than Σε: the Rényi divergence of infinite order, and the end of the loss distribution."""
    return _sum_up((part.times, part.law.epsilon) for part in parts)


def _interval(parts: Sequence[Release], mu: float) -> float:
    """A grid so fine that rounding hardly widens the total loss, yet of at most about a million points.

    Splitting an atom between grid points adds at most interval²/4 to its variance, which is about 2ρ. The release that
    weighs most gets its ε exactly onto the grid.
    """
    n = sum(part.times for part in parts)
    spread = math.sqrt(2 * math.fsum(part.times * part.law.rho for part in parts) / n)
    width = 2 * math.fsum(part.times * part.law.epsilon for part in parts) + 20 * mu
    # A Gaussian loss moves up by as much as one whole interval.
    fine = min(_FINENESS * spread, _GAUSSIAN_INTERVAL) if mu else _FINENESS * spread
    wanted = max(fine, width / _MOST_POINTS)
    heaviest = max(parts, key=lambda part: part.times * part.law.rho).law.epsilon
    return heaviest / math.ceil(heaviest / wanted) if heaviest > wanted else wanted


def _sum_up(costs: Iterable[tuple[int, float]]) -> float:
    """Σ times·ε in fractions, rounded up: ten times ε = 1 is 10 and not a hair more."""
    listed = list(costs)
    if any(math.isinf(epsilon) for _, epsilon in listed):
        return math.inf
    return fraction_up(sum((times * Fraction(epsilon) for times, epsilon in listed), Fraction(0)))


def _up(amount: float) -> float:
    return amount * (1 + _FLOAT_SLACK)


RULES: dict[Rule, Callable[[Sequence[Release], float], Cost]] = {
    "basic": basic,
    "zcdp": zcdp,
    "renyi": renyi,
    "pld": pld,
}
"""The composition rules by name; each takes releases and δ and returns their cost together."""


def totals(spends: Iterable[Spend], delta: float = DEFAULT_DELTA) -> dict[Unit, dict[Rule, Cost]]:
    """What one worker's spends cost together, in every unit and under every rule. Unprotected ones are left out."""
    listed = list(spends)
    units: tuple[Unit, ...] = ("value", "cell", "vector")
    return {unit: dict(_under_all_rules(releases(listed, unit), delta)) for unit in units}


@lru_cache(maxsize=1024)
def _under_all_rules(parts: tuple[Release, ...], delta: float) -> dict[Rule, Cost]:
    # Workers of one study spend alike, and the units often coincide: most totals are asked for again.
    return {name: rule(parts, delta) for name, rule in RULES.items()}
