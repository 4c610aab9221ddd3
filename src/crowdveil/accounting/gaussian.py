"""The true privacy of Gaussian noise (Balle & Wang 2018), and what Loki printed instead.

Only `mu = range / deviation` matters. Gaussian noise has no finite ε at δ = 0, which is why no ledger takes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from crowdveil.accounting.conversion import check_delta
from crowdveil.errors import InputError
from crowdveil.guarantee import round_up

_FLOAT_SLACK = 1e-12


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), exactly the hockey-stick divergence of N(μ, 1) and N(0, 1)."""
    if mu == 0:
        return 0.0
    # The second term is computed as a logarithm: e^ε alone overflows long before the product does.
    first, second = ndtr(mu / 2 - epsilon / mu), math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
    return max(0.0, float(first) - second)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest ε at δ: the analytic Gaussian mechanism.

    >>> [round(gaussian_epsilon(4 / deviation, 0.01), 3) for deviation in (3, 6, 12)]
    [3.421, 1.349, 0.534]
    """
    check_delta(delta)
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    # ρ = μ²/2 gives ε ≤ ρ + 2√(ρ ln 1/δ), so a root lies below.
    above = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1
    root = brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, above, xtol=1e-13, rtol=1e-14)
    return cast(float, root) * (1 + _FLOAT_SLACK)


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """A privacy number as a paper computes it. It is no guarantee, and says so wherever it is shown."""

    paper: str
    epsilon: float
    why: str

    def __str__(self) -> str:
        return f"{self.paper} gives ε = {self.epsilon:.2f}; this is no guarantee: {self.why}"


def kandappu_2015_formula_4_2(value_range: float, deviation: float, delta: float) -> PaperClaim:
    """Loki's (4.2) as printed: the smallest ε with ε·γ²/(2R²) + ln(ε·γ²) ≥ ln(1/δ).

    Solved, it gives 3.81, 0.95, 0.24 for γ = 3, 6, 12 at δ = .01; the paper's own Example 2 prints 3.42, 0.85, 0.21.
    Both fall with γ², while the true ε falls with γ.

    >>> print(kandappu_2015_formula_4_2(4, 6, 0.01))
    Kandappu et al. 2015 (Loki), formula (4.2) gives ε = 0.95; this is no guarantee: the true ε is 1.3486
    """
    check_delta(delta)
    _check_positive("the range of the scale", value_range)
    _check_positive("the standard deviation", deviation)

    def excess(epsilon: float) -> float:
        scaled = epsilon * deviation**2
        return scaled / (2 * value_range**2) + math.log(scaled) - math.log(1 / delta)

    low, high = 1e-300, 2 * value_range**2 / deviation**2 * (math.log(1 / delta) + 1) + 1 / deviation**2
    printed = cast(float, brentq(excess, low, high, xtol=1e-13, rtol=1e-14))
    true = gaussian_epsilon(value_range / deviation, delta)
    return PaperClaim("Kandappu et al. 2015 (Loki), formula (4.2)", printed, f"the true ε is {round_up(true)}")


def kandappu_2015_formula_4_3(n_options: int, p_lie: float, delta: float) -> float:
    """Loki's (4.3), which is right: ε = ln(1 − p − δ) − ln p + ln(n − 1) for one multiple-choice answer.

    >>> [round(kandappu_2015_formula_4_3(5, p, 0.01), 3) for p in (0.1, 0.3, 0.4)]
    [3.572, 2.219, 1.775]
    """
    if p_lie == 0:
        return math.inf
    if not 0 < p_lie < 1 - delta:
        raise InputError(f"the probability of another option must be from 0 to 1 − δ; got {p_lie}")
    return math.log(1 - p_lie - delta) - math.log(p_lie) + math.log(n_options - 1)


def _check_positive(what: str, value: float) -> None:
    if not value > 0 or math.isinf(value):
        raise InputError(f"{what} must be a positive number; got {value}")
