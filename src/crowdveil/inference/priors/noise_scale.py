"""The law of the workers' spreads: most are like the crowd's typical worker, as far as nothing else is seen.

Free weights of ten spreads follow many workers with many answers each. Of a few answers they make whatever these happen
to look like, two that agree being very exact workers; and no spread is known better than from so many answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
_AT_RANDOM = 0.3
"""How often the first law expects a worker who answers at random, beside each of the spreads (which count 1)."""
_EVEN = 1.0
"""How many pseudo-workers follow the first law to the end, so that no spread becomes impossible."""
_APART = 1 / 3
"""How far the logarithms of workers' spreads lie apart (a standard deviation) before anything is known."""
_MANY = 200.0
"""With so many answers beyond one a question the typical spread is as good as known: Student's law is normal there."""
_NODES = np.array([0, 1, -1, 2, -2, 3, 4])
"""Spreads that are looked at, in standard deviations of the logarithm; few answers hide more than they exaggerate."""


def first_spreads(n_spreads: int) -> Floats:
    """Before anything is known: all spreads alike, and a few who answer at random."""
    law: Floats = np.append(np.ones(n_spreads), _AT_RANDOM) / (n_spreads + _AT_RANDOM)
    return law


def fitted_spreads(counts: Array, spreads: Array, weight: float) -> Floats:
    """The next law when each spread was a worker's so often; `weight` pseudo-workers are like the typical worker.

    These follow a normal law of ln σ with the counts' mean, and with their variance as far as workers are many.
    """
    logs, seen, first = np.log(spreads), counts[:-1], first_spreads(len(spreads))
    total = max(float(seen.sum()), 1e-300)
    centre = float(seen @ logs) / total
    variance = (float(seen @ (logs - centre) ** 2) + weight * _APART**2) / (total + weight)
    typical = np.exp(-((logs - centre) ** 2) / (2 * max(variance, 1e-3)))
    at_random = (counts[-1] + _EVEN * first[-1]) / (counts.sum() + _EVEN)
    pseudo = np.append((1 - at_random) * typical / typical.sum(), at_random)
    law: Floats = (counts + weight * pseudo + _EVEN * first) / (counts.sum() + weight + _EVEN)
    return law


def factors(n_reports: int, n_questions: int) -> list[tuple[float, float]]:
    """By how much all spreads may be wrong, and how likely that is before a question's own answers are heard.

    Of d answers beyond one a question, ln σ is known up to a variance of 1/(2d); what the other questions say of it is
    the prior of each question, and a question alone has none. The first factor is 1.
    """
    freedom = max(n_reports - n_questions, 1)
    if freedom >= _MANY:
        return [(1.0, 1.0)]
    steps = _NODES / np.sqrt(2 * freedom)
    others = freedom * (1 - 1 / max(n_questions, 1))
    weights = np.exp(-(steps**2) * others)
    return list(zip(np.exp(steps).tolist(), (weights / weights.sum()).tolist(), strict=True))
