"""Means where participation is protected: a ratio of two noisy sums and its interval (Fieller 1954).

What everybody's reports sum to is known up to noise, and so is how many answered; noise can make that number nearly
nothing or negative, where dividing by it says nothing. A number θ is in the interval as long as total − θ·answered
could be 0. How many answered is drawn towards what the other questions show, as far as noise and not a difference
between questions makes it vary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from crowdveil.domain import Domain
from crowdveil.inference.observations.numeric import Numbers, domain_bounds, domain_middle, sums
from crowdveil.inference.protocols import Columns, Parameters, Statistics
from crowdveil.inference.uncertainty.means import rounded_reach
from crowdveil.inference.uncertainty.summaries import LEVEL

Array = NDArray[Any]
_FEWEST = 3
"""Questions from which a question's participation is compared with the others'."""
_ANYHOW = 1e9
"""How much participation differs between questions when nothing is known about it."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """By place (a question, or a question at a level of privacy): reports, Σ value, Σ share, and squares around both.

    Values are counted from the domain's middle, where value and share vary independently for most channels.
    """

    count: Array
    total: Array
    mass: Array
    squares: Array
    """Three rows: value², value·share, share², around the place's own means."""

    @property
    def freedom(self) -> Array:
        freedom: Array = np.maximum(self.count - 1, 0)
        return freedom

    def value(self, domain: Domain) -> Array:
        """Total / mass as it comes; the domain's middle where nobody seems to have answered."""
        quotient = np.divide(self.total, self.mass, out=np.zeros_like(self.total), where=self.mass > 1e-12)
        value: Array = domain_middle(domain) + quotient
        return value

    def statistics(self) -> Statistics:
        """What `crowd_of` needs; sums over places (the last axis) that add up over blocks."""
        pairs = self.count**2, self.count * self.mass, self.mass**2
        return {
            "squares": self.squares.sum(axis=-1),
            "freedom": self.freedom.sum(axis=-1),
            "count": self.count.sum(axis=-1),
            "mass": self.mass.sum(axis=-1),
            "pairs": np.stack([each.sum(axis=-1) for each in pairs]),
            "asked": (self.count > 0).sum(axis=-1).astype(np.float64),
        }


def ratio_sums(rows: Numbers, cell: Array, shape: tuple[int, ...], domain: Domain) -> Sums:
    """The sums by place, in an array of this shape."""
    size = int(np.prod(shape))
    value = rows.value - rows.share * domain_middle(domain)
    count, total, mass = (sums(cell, each, size) for each in (None, value, rows.share))
    known = np.maximum(count, 1)
    value, share = value - (total / known)[cell], rows.share - (mass / known)[cell]
    squares = np.stack([sums(cell, each, size) for each in (value**2, value * share, share**2)])
    return Sums(count.reshape(shape), total.reshape(shape), mass.reshape(shape), squares.reshape(3, *shape))


def around(covariance: Array, value: Array) -> Array:
    """The variance of value − θ·share at θ, counted from the domain's middle."""
    variance: Array = covariance[0] - 2 * value * covariance[1] + value**2 * covariance[2]
    return variance


def pooled_covariance(statistics: Statistics) -> Parameters:
    """`covariance` of one report's value and share, `given`, the part that answers, and how much that `differs`.

    Parts that answer differ by what the sums of shares vary more than the single shares explain (moments).
    """
    count = np.maximum(statistics["count"], 1.0)
    covariance = statistics["squares"] / np.maximum(statistics["freedom"], 1.0)
    response_rate = np.clip(statistics["mass"] / count, 1e-6, 1.0)
    counts, both, masses = statistics["pairs"]
    apart = masses - 2 * response_rate * both + response_rate**2 * counts - count * covariance[2]
    differs = np.maximum(apart / np.maximum(counts, 1.0), 0.0)
    return {
        "covariance": covariance,
        "given": response_rate,
        "differs": np.where(statistics["asked"] >= _FEWEST, differs, _ANYHOW),
        "unsure": covariance[2] / count,
    }


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """A total, what it is to be divided by, and the variance of total − θ·mass: three rows for 1, −2θ and θ²."""

    total: Array
    mass: Array
    variance: Array

    def columns(
        self, raw: Array, freedom: Array, answered: Array, domain: Domain, *, rounded: Array | float = 0.0
    ) -> Columns:
        """Fieller's interval, cut where the domain ends, and the value in it that is next to `raw`.

        `rounded` is the variance of the error of rounding, which comes on top.
        """
        low, high = (each - domain_middle(domain) for each in domain_bounds(domain))
        wide = stdtrit(np.maximum(freedom, 1.0), 0.5 + LEVEL / 2) ** 2
        first, last = (domain_middle(domain) + each for each in _fieller(self, wide, low, high))
        further = np.maximum(rounded_reach((last - first) / 2, rounded) - (last - first) / 2, 0.0)
        bounds = [np.clip(each, *domain_bounds(domain)) for each in (first - further, last + further)]
        return {
            "value": np.where(answered, np.clip(raw, *bounds), np.nan),
            "confidence": np.where(answered, LEVEL, 0.0),
            "low": np.where(answered, bounds[0], domain_bounds(domain)[0]),
            "high": np.where(answered, bounds[1], domain_bounds(domain)[1]),
        }


def fieller_ratio(sums: Sums, crowd: Parameters, covariance: Array) -> Ratio:
    """The ratio by place when one report has this covariance (value², value·share, share²)."""
    count, response_rate, differs, unsure = (
        sums.count,
        *(crowd[name][..., None] for name in ("given", "differs", "unsure")),
    )
    # Of what shares vary, choices to answer are real, p(1 − p) a report, and so are differences; the rest is noise.
    real = count * (count * differs + response_rate * (1 - response_rate))
    seen = count * (count * differs + covariance[2])
    shrinkage = np.clip(np.divide(real, seen, out=np.ones_like(seen), where=seen > 0), 0.0, 1.0)
    mass = count * response_rate + shrinkage * (sums.mass - count * response_rate)
    guessed = (count * (1 - shrinkage)) ** 2 * (differs + unsure)
    variance = count * np.stack([covariance[0] + 0 * count, shrinkage * covariance[1], shrinkage**2 * covariance[2]])
    variance[2] += guessed
    return Ratio(sums.total, mass, variance)


def _fieller(ratio: Ratio, wide: Array, low: float, high: float) -> tuple[Array, Array]:
    """The ends of {θ : (total − θ·mass)² ≤ wide · variance(θ)} between low and high."""
    square = ratio.mass**2 - wide * ratio.variance[2]
    cross = ratio.mass * ratio.total - wide * ratio.variance[1]
    alone = ratio.total**2 - wide * ratio.variance[0]
    root = np.sqrt(np.maximum(cross**2 - square * alone, 0.0))
    safe = np.where(np.abs(square) > 1e-12, square, 1e-12)
    first, last = np.sort([(cross - root) / safe, (cross + root) / safe], axis=0)
    closed = (square > 0) & (ratio.mass > 0)
    # Where the mass may be nothing, θ lies outside both roots, or anywhere at all.
    anywhere = ~closed & ((cross**2 <= square * alone) | (square > 0))
    below, above = low <= first, high >= last
    start = np.where(closed, np.clip(first, low, high), np.where(anywhere | below, low, np.clip(last, low, high)))
    end = np.where(closed, np.clip(last, low, high), np.where(anywhere | above, high, np.clip(first, low, high)))
    neither = ~closed & ~anywhere & ~below & ~above
    return np.where(neither, low, start), np.where(neither, high, end)
