"""What the ends of a scale do to a mean: answers beyond them are given as the last level, so means lie too far inside.

A truth at the end of a scale is answered with it or with levels further in, never with one beyond. No number of answers
removes that error, and noise that comes after it does not either. How large it is follows from how far answers spread,
which the ends hide in part, too. Errors are taken as normal (a censored normal law; Tobin 1958).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crowdveil.domain import Domain
from crowdveil.inference.observations.numeric import domain_bounds, domain_middle, half_step, noise_at
from crowdveil.inference.protocols import Columns, Statistics
from crowdveil.inference.uncertainty.fieller import Sums, around
from crowdveil.reports import AnyChannel

Array = NDArray[Any]
Floats = NDArray[np.float64]
_BINS, _PLACES, _MOST = 32, 129, 100
"""Bins for means, truths looked at, and levels that are told apart."""


def mean_histogram(value: Array, weight: Array, noise: Array | float, domain: Domain) -> Statistics:
    """How much weight the means of each part of the scale have, and how much noise; sums that add up over blocks."""
    low, high = domain_bounds(domain)
    bin_index = np.clip((value - low) / ((high - low) or 1.0) * _BINS, 0, _BINS - 1).astype(np.int64)
    return {"means": np.bincount(bin_index, weight, minlength=_BINS), "noise": np.asarray((weight * noise).sum())}


def hidden_means_seen(found: Sums, reports: Array, channels: tuple[AnyChannel, ...], domain: Domain) -> Statistics:
    """The same where participation is protected: `noise` of a report that is an answer, `silence` of any other."""
    value = np.clip(found.value(domain), *domain_bounds(domain))
    answered, silent = (noise_at(value, reports, channels, domain, given=part) for part in (1.0, 0.0))
    return {
        **mean_histogram(value, found.freedom, answered, domain),
        "silence": np.asarray((found.freedom * silent).sum()),
        "around": np.asarray(around(found.squares, value - domain_middle(domain)).sum()),
    }


def squares_left(statistics: Statistics, squares: float, given: float = 1.0) -> float:
    """The weighted squares of the answers, the channels' noise taken out, when so much is `given` of what may be."""
    noise = float(statistics["noise"])
    if "silence" in statistics:
        noise = given * noise + (1 - given) * float(statistics["silence"])
    return (squares - noise) / given


def spread_of_errors(means: Array, squares: float, domain: Domain) -> float:
    """The standard deviation of errors before the scale cut them, from the weighted squares that are left (bisection).

    Errors within a third of a level count as that: what is left of them is rounding.
    """
    low, high = domain_bounds(domain)
    places = low + (np.arange(_BINS) + 0.5) / _BINS * (high - low)
    least, most = 2 * half_step(domain) / 3, (high - low) / 2
    for _ in range(40):
        middle = (least + most) / 2
        centres, variances = _censored_moments(domain, middle)
        short = means @ np.interp(places, centres, variances) < squares
        least, most = (middle, most) if short else (least, middle)
    return (least + most) / 2


def reaching_out(columns: Columns, spread: float, domain: Domain) -> Columns:
    """The interval of a mean, moved out to the truths whose means it holds; where the scale does not cut it stays."""
    centres, _ = _censored_moments(domain, spread)
    places = _places(domain)
    low, high = (np.interp(columns[name], centres, places) for name in ("low", "high"))
    return {**columns, "low": np.minimum(columns["low"], low), "high": np.maximum(columns["high"], high)}


def _places(domain: Domain) -> Floats:
    return np.linspace(*domain_bounds(domain), _PLACES)


def _censored_moments(domain: Domain, spread: float) -> tuple[Floats, Floats]:
    """By truth: mean and variance of the levels that are answered when errors have this spread."""
    low, high = domain_bounds(domain)
    n = int(min(max(round((high - low) / max(2 * half_step(domain), 1e-12)), 1), _MOST))
    step = (high - low) / n
    edges = low + step * (np.arange(n) + 0.5)
    above = ndtr((_places(domain)[:, None] - edges) / max(spread, 1e-12))
    # Levels are low + step · k: the mean of k is the sum of P(k > i), that of k² the sum of (2i + 1)·P(k > i).
    first, second = above.sum(axis=1), above @ (2 * np.arange(n) + 1)
    return low + step * first, step**2 * np.maximum(second - first**2, 0.0)
