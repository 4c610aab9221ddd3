"""Intervals of numbers: Student's for what varies, and an even law for what rounding to levels leaves."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from crowdveil.domain import Domain
from crowdveil.inference.observations.numeric import domain_bounds, half_step
from crowdveil.inference.protocols import Columns
from crowdveil.inference.uncertainty.summaries import LEVEL, QUANTILE

Array = NDArray[Any]
_PARTS, _WAVES = 256, 8


def rounding(domain: Domain, variance: Array) -> NDArray[np.float64]:
    """The variance of the error that rounding to levels leaves in a mean, however many answers there are.

    `variance` is that of the rounded answers, without any channel's noise: noise that comes after rounding does not
    undo it. Rounded answers of spread σ have the mean truth + Σ_n ± step/(πn)·exp(−2π²n²σ²/step²)·sin(2πn·truth/step);
    over truths that is a variance of Σ_n step²/(2π²n²)·exp(−4π²n²σ²/step²), at most step²/12.
    """
    return _over_truths(domain, [each**2 for each in _waves(domain, variance)], np.zeros_like(variance))


def rounding_of_weighted(
    domain: Domain,
    variance: Array,
    weight: Array,
    question: Array,
    n_questions: int,
    *,
    own: Array | None = None,
    borrowed: Array | float = 0.0,
) -> NDArray[np.float64]:
    """The same for a weighted mean: the waves of the single answers add, each by its weight.

    A few who answer at random have a large variance and little weight; the rest may agree all the same. A variance may
    be `borrowed` in part; that part of the waves is then left by the answer's `own` variance.
    """
    total = np.maximum(np.bincount(question, weight, minlength=n_questions), 1e-300)
    nothing, own = np.zeros(n_questions), variance if own is None else own
    # Where even the best answers spread over more than two levels, no wave is left.
    if min(variance.min(initial=np.inf), own.min(initial=np.inf)) > 9 * half_step(domain) ** 2:
        return nothing
    pairs = zip(_waves(domain, variance), _waves(domain, own), strict=True)
    waves = (weight * (lent + borrowed * (upper - lent)) for lent, upper in pairs)
    shares = (np.bincount(question, each, minlength=n_questions) / total for each in waves)
    return _over_truths(domain, [each**2 for each in shares], nothing)


def _waves(domain: Domain, variance: Array) -> list[NDArray[np.float64]]:
    """What is left of the first waves of the error of rounding when rounded answers have this variance."""
    step = 2 * half_step(domain)
    if step == 0:
        return []
    first = np.exp(-2 * np.pi**2 * np.maximum(variance / step**2 - 1 / 12, 0.0))
    return [first ** (n * n) for n in range(1, _WAVES + 1)]


def _over_truths(domain: Domain, squares: list[Array], nothing: Array) -> NDArray[np.float64]:
    step = 2 * half_step(domain)
    parts = (square * step**2 / (2 * (np.pi * n) ** 2) for n, square in enumerate(squares, start=1))
    return sum(parts, start=nothing)


def rounding_of_medians(domain: Domain, beside: float) -> float:
    """The same for a median that takes answers as spread evenly around their level.

    They are the more so the more answers lie `beside` the median's level for each that lies at it. Unlike a variance,
    that does not change when a few answer at random.
    """
    ratios, variances = _medians()
    return float(np.interp(beside, ratios, variances)) * (2 * half_step(domain)) ** 2


@cache
def _medians() -> tuple[Array, Array]:
    """Answers beside the median's level for each at it, and the error of rounding, for normal errors of many spreads.

    A truth t steps above a level leaves F(−½) of the answers below that level's cell and F(½) below its end; the median
    is read off between the two.
    """
    spread, truth = np.geomspace(1e-3, 3.0, 96)[:, None], (np.arange(64) + 0.5) / 128
    cdf = [ndtr((edge - truth) / spread) for edge in (-1.5, -0.5, 0.5, 1.5)]
    inside = cdf[2] - cdf[1]
    error = truth + 0.5 - (0.5 - cdf[1]) / inside
    return (cdf[3] - cdf[0] - inside).mean(axis=1) / inside.mean(axis=1), np.square(error).mean(axis=1)


def remove_rounding(domain: Domain, variance: Array, levels: Array | float) -> NDArray[np.float64]:
    """A variance that was found as `levels` times the squared distance of two levels, the rounding taken out.

    Numbers at a distance of d < step are rounded to levels one step apart with probability d/step, else to the same:
    the square is step·d on average. Of wide distances it is d² + step²/6.
    """
    step = 2 * half_step(domain)
    if step == 0 or not np.any(levels):
        return variance
    square = variance / (levels * step**2)
    near = (1 + np.sqrt(1 / 3)) / 2
    variance_unrounded: NDArray[np.float64] = np.where(square < near, square**2, square - 1 / 6) * levels * step**2
    return variance_unrounded


def with_interval(
    raw: Array, variance: Array, freedom: Array, answered: Array, domain: Domain, *, rounded: Array | float = 0.0
) -> Columns:
    """Value and Student's interval; all of the domain where nobody answered.

    The interval stands around the number as it came and is cut where the domain ends. Around the value, which has been
    moved into the domain, it would hold the truth more often than it says. `rounded` is the variance of the error of
    rounding, which comes on top.
    """
    low, high = domain_bounds(domain)
    reach = rounded_reach(stdtrit(np.maximum(freedom, 1.0), 0.5 + LEVEL / 2) * np.sqrt(variance), rounded)
    return {
        "value": np.where(answered, np.clip(raw, low, high), np.nan),
        "confidence": np.where(answered, LEVEL, 0.0),
        "low": np.where(answered, np.clip(raw - reach, low, high), low),
        "high": np.where(answered, np.clip(raw + reach, low, high), high),
    }


def rounded_reach(reach: Array, rounded: Array | float) -> NDArray[np.float64]:
    """How far an interval of this reach must go when an error of rounding, of the variance `rounded`, is added.

    That error is even between two bounds, not normal: a level agreed on by all is wrong by at most half a step, and
    1.96 standard deviations would be more than that.
    """
    spread, bound = reach / QUANTILE, np.sqrt(3 * np.asarray(rounded))
    whole = spread + bound
    part = np.divide(bound, whole, out=np.zeros_like(whole), where=whole > 0)
    reach_rounded: NDArray[np.float64] = np.interp(part, *_reaches()) * whole
    return reach_rounded


@cache
def _reaches() -> tuple[Array, Array]:
    """Where |normal + even| lies with probability LEVEL when deviation and bound add to 1, by the bound's part.

    P(|sZ + U| ≤ r) = s/a · (H((r + a)/s) − H((r − a)/s)) − 1 with H(x) = xΦ(x) + φ(x) the integral of Φ.
    """
    part = np.linspace(0.0, 1.0, _PARTS + 1)
    inner = part[1:-1]
    low, high = np.zeros_like(inner), np.full_like(inner, QUANTILE)
    for _ in range(50):
        middle = (low + high) / 2
        above, below = ((_integral((middle + side * inner) / (1 - inner))) for side in (1, -1))
        short = (1 - inner) / inner * (above - below) - 1 < LEVEL
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return part, np.concatenate([[QUANTILE], high, [LEVEL]])


def _integral(x: Array) -> Array:
    integral: Array = x * ndtr(x) + np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    return integral
