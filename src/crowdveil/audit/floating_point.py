"""Mironov's test: which reports with floating-point noise could never have come from another answer (2012)?

Noise is a rising function of an integer of some fifty bits, so only so many numbers can be reached from each answer. A
report that another answer cannot reach proves that the other answer was not given, whatever ε was claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.entropy import UNIFORM_BITS, mantissas_to_uniform
from crowdveil.mechanisms._research_reports import laplace_quantile

_NUMPY_BITS = 53
# The noise rises only up to rounding, so a few neighbours are looked at as well.
_WINDOW = 8

_log = np.frompyfunc(math.log, 1, 1)


@dataclass(frozen=True, slots=True)
class Noise:
    """`of` gives the noise for each integer in [0, 2^bits), and rises with it."""

    bits: int
    of: Callable[[NDArray[np.int64]], NDArray[np.float64]]


def numpy_laplace(scale: float) -> Noise:
    """What NumPy's generator computes: U < ½ gives scale·ln(2U), else −scale·ln(2 − 2U)."""

    def noise(mantissas: NDArray[np.int64]) -> NDArray[np.float64]:
        uniform = mantissas * 2.0**-_NUMPY_BITS
        lower = uniform < 0.5
        folded = np.where(lower, uniform + uniform, 2.0 - uniform - uniform)
        with np.errstate(divide="ignore"):
            # The same C function as NumPy's generator; the vectorised logarithm rounds differently.
            logarithm = np.array(_log(np.maximum(folded, 2.0**-1074)), dtype=np.float64)
        return np.where(lower, scale * logarithm, -(scale * logarithm))

    return Noise(_NUMPY_BITS, noise)


def laplace_by_inversion(scale: float) -> Noise:
    """What the research mechanism `laplace` computes."""
    return Noise(UNIFORM_BITS, lambda mantissas: laplace_quantile(mantissas_to_uniform(mantissas), scale))


def reachable(reports: NDArray[Any], answer: float, noise: Noise) -> NDArray[np.bool_]:
    """Which reports equal answer + noise(m) for some m."""
    wanted = np.asarray(reports, dtype=np.float64)
    low, high = np.zeros(len(wanted), dtype=np.int64), np.full(len(wanted), 2**noise.bits - 1, dtype=np.int64)
    for _ in range(noise.bits):
        middle = (low + high) // 2
        reached = answer + noise.of(middle) >= wanted
        high, low = np.where(reached, middle, high), np.where(reached, low, middle + 1)
    matched = np.zeros(len(wanted), dtype=bool)
    for step in range(-_WINDOW, _WINDOW + 1):
        near = np.clip(high + step, 0, 2**noise.bits - 1)
        matched |= answer + noise.of(near) == wanted
    return matched


def named_share(reports: NDArray[Any], other_answer: float, noise: Noise) -> float:
    """The share of floating-point reports that `other_answer` cannot have produced: each of them reveals the answer."""
    return 1.0 - float(reachable(reports, other_answer, noise).mean())


def named_share_of_table(weights: NDArray[np.uint64]) -> float:
    """As `named_share`, of a table: the largest probability of an output that some other input cannot give."""
    possible = weights.max(axis=0) > 0
    telling = possible & (weights.min(axis=0) == 0)
    shares = weights[:, telling].astype(np.float64).sum(axis=1) / weights.astype(np.float64).sum(axis=1)
    return float(shares.max())
