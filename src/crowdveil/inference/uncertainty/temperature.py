"""How sure posteriors may be: as sure as foretells each report best from the other reports about its question.

Questions differ in more than their truth: some are hard, some mislead. What workers say about such a one goes together
in ways that their skills do not explain, and a posterior that multiplies their reports as if each stood alone is too
sure. Raising posteriors to a power below 1 takes that back and changes no value (Guo et al. 2017 do so with known
truths). Here the reports themselves tell how far to go: too sure a posterior foretells the next report badly, and the
power that foretells them best is taken, less what chance may have done (as Grünwald 2012 chooses a learning rate).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.protocols import Parameters, Statistics

Array = NDArray[Any]

POWERS = 2.0 ** -(np.arange(13) / 4)
"""What is tried: from 1, posteriors as they are, to an eighth, a quarter of an octave apart."""
ENOUGH = 100_000
"""So many reports tell one number well enough; of a larger table only some questions are asked."""
_TINY = 1e-30
_ROUNDING = 1e-13


def loo_log_predictive(posterior: Array, chance: Array) -> Array:
    """By power: the logarithms of how likely all reports were, each foretold by what the others left of its question.

    `posterior` has for each report its question's posterior, `chance` how likely the report is under each option.
    """
    # Option by report, so that sums over the few options run along the many reports.
    likely = np.ascontiguousarray(np.maximum(chance, _TINY).T, dtype=np.float64)
    others = np.log(np.ascontiguousarray(np.maximum(posterior, _TINY).T, dtype=np.float64)) - np.log(likely)
    others -= others.max(axis=0)
    scores = []
    for power in POWERS:
        weight = np.exp(power * others)
        scores.append(float(np.log((weight * likely).sum(axis=0) / weight.sum(axis=0)).sum()))
    return np.array(scores)


def fit_posterior_power(foretold: Array) -> float:
    """The power that foretells best, less one standard error, so that posteriors stay as they are for want of reports.

    Between the powers that were tried, the parabola through three of them tells where the best one is, and its bend how
    well that is known: the logarithms of probabilities fall by one half a standard error away from their top.
    """
    rounding = _ROUNDING * float(np.abs(foretold).max())
    best = int(np.argmax(foretold >= foretold.max() - rounding))
    middle = min(max(best, 1), len(foretold) - 2)
    left, top, right = foretold[middle - 1 : middle + 2]
    bend = left - 2 * top + right
    if bend >= -4 * rounding:
        # No top is in sight: nothing tells, or the best lies beyond what was tried.
        return float(POWERS[best])
    vertex = middle + np.clip(0.5 * (left - right) / bend, -1, 1) - 1 / np.sqrt(-bend)
    return float(2.0 ** (-np.clip(vertex, 0, len(foretold) - 1) / 4))


def temper(posterior: Array, posterior_power: float) -> Array:
    """Posteriors to the power of `posterior_power`; what is certain stays so, and what is likeliest stays likeliest."""
    if posterior_power == 1:
        return posterior
    raised = posterior**posterior_power
    softer: Array = raised / raised.sum(axis=1, keepdims=True)
    return softer


def posterior_power(parameters: Parameters) -> float:
    """The power of the posteriors; 1 before the reports were asked for it."""
    return float(parameters["posterior_power"][0]) if "posterior_power" in parameters else 1.0


def with_posterior_power(statistics: Statistics, parameters: Parameters) -> Parameters:
    """The parameters with the power that the statistics speak for."""
    return {**parameters, "posterior_power": np.array([fit_posterior_power(statistics["loo_log_predictive"])])}


def sample_questions(n_questions: int, n_reports: int) -> NDArray[np.bool_]:
    """Which questions of a block are asked if the whole table has so many reports: scattered, and always the same."""
    if n_reports <= ENOUGH:
        return np.ones(n_questions, dtype=np.bool_)
    # Multiples of an odd constant near 2³²/φ spread evenly over all remainders (Knuth's multiplicative hashing).
    scattered = np.arange(1, n_questions + 1, dtype=np.uint64) * np.uint64(2654435761) % np.uint64(2**32)
    sampled: NDArray[np.bool_] = scattered < 2.0**32 * ENOUGH / n_reports
    return sampled
