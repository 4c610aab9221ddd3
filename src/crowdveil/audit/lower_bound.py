"""A certified lower bound on ε from counts: one half of the samples picks the event, the other half measures it.

Because the event was picked on samples that are not measured, no correction for having looked at many is due. The
first half is itself split: its first part orders the cells, its second part says how many of them to take, since a
cell that looks telling by chance would look so again on the samples that ordered it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

ALPHA = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class LowerBound:
    """With confidence 1 − alpha, ε is at least `epsilon`: shown by distinguishing input `first` from input `second`."""

    epsilon: float
    first: int
    second: int
    event: NDArray[np.int64]
    p_first: float
    p_second: float


def clopper_pearson_low(hits: int, n: int, alpha: float) -> float:
    """The probability is at least this, with confidence 1 − alpha."""
    return 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1, alpha))


def clopper_pearson_high(hits: int, n: int, alpha: float) -> float:
    """The probability is at most this, with confidence 1 − alpha."""
    return 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, 1 - alpha))


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A pair of inputs, an event that tells them apart, and how well it promises to."""

    first: int
    second: int
    event: NDArray[np.int64]
    score: float


def choose(
    ordered_on: NDArray[np.int64],
    sized_on: NDArray[np.int64],
    pairs: Iterable[tuple[int, int]],
    *,
    alpha: float = ALPHA,
    delta: float = 0.0,
) -> Choice:
    """Counts are input × cell. By likelihood ratio, falling, the best event is a prefix (Neyman–Pearson)."""
    best = Choice(0, 0, np.zeros(0, dtype=np.int64), -math.inf)
    z = float(-ndtri(alpha / 2))
    for first, second in pairs:
        cells = np.flatnonzero(ordered_on[first] + ordered_on[second])
        ratio = (ordered_on[first, cells] + 0.5) / (ordered_on[second, cells] + 0.5)
        order = cells[np.argsort(-ratio, kind="stable")]
        score = _score(sized_on[first], sized_on[second], order, z, delta)
        size = int(np.argmax(score)) + 1
        if score[size - 1] > best.score:
            best = Choice(first, second, order[:size], float(score[size - 1]))
    return best


def measure(choice: Choice, counts: NDArray[np.int64], *, alpha: float = ALPHA, delta: float = 0.0) -> LowerBound:
    """The bound of an event that was chosen elsewhere; α/2 is spent on each side."""
    first, second, event = choice.first, choice.second, choice.event
    hits, misses = (int(counts[row, event].sum()) for row in (first, second))
    low = clopper_pearson_low(hits, int(counts[first].sum()), alpha / 2)
    high = clopper_pearson_high(misses, int(counts[second].sum()), alpha / 2)
    epsilon = math.log((low - delta) / high) if low > delta else 0.0
    return LowerBound(max(0.0, epsilon), first, second, event, low, high)


def _score(
    first: NDArray[np.int64], second: NDArray[np.int64], order: NDArray[np.int64], z: float, delta: float
) -> NDArray[np.float64]:
    # Bounds of a Poisson count, in the normal approximation of √count: good enough to choose by, never to report.
    hits, misses = first[order].cumsum(), second[order].cumsum()
    low = hits + z * z / 2 - z * np.sqrt(hits + z * z / 4) - delta * first.sum()
    high = misses + z * z / 2 + z * np.sqrt(misses + z * z / 4)
    score: NDArray[np.float64] = np.log(np.maximum(low, 1e-9) / high)
    return score
