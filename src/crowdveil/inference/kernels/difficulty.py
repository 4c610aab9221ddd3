"""The pass of GLAD over rows that stand by question, compiled; `test_glad.py` holds the plain version of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
_NEWTON_STEPS = 8
_HALVINGS = 30


@njit(nogil=True, cache=True, error_model="numpy")
def sweep_glad(
    starts: Array,
    worker: Array,
    symbol: Array,
    ability: Array,
    response_rate: Array,
    likelihood: Array,
    empty_likelihood: Array,
    log_classes: Array,
    gold: Array,
    log_easiness: Array,
    prior_mean: float,
    prior_variance: float,
    posterior: Array,
    sums: Array,
) -> float:
    """One E-step and the M-step of the questions; returns the log-likelihood of the parameters it was given.

    `likelihood[s, a]` is P(symbol s | answer a). `posterior` and `log_easiness` are overwritten. `sums[w]` collects for
    each worker Σ β(r − q)/2, Σ β²ω(r + q), the squared scores, the answers r + q and the right answers r, where r and q
    are the probabilities that the answer was right and wrong, and ω the Pólya–Gamma mean tanh(x/2)/(2x) at x = αβ.
    """
    n_options, total, longest = likelihood.shape[1], 0.0, np.diff(starts).max() if len(starts) > 1 else 0
    tables = (likelihood, likelihood.sum(axis=1), empty_likelihood)
    right, wrong, weight, score = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    for question in range(len(starts) - 1):
        first, last = starts[question], starts[question + 1]
        if first == last:
            posterior[question] = 1.0 / n_options
            log_easiness[question] = prior_mean
            continue
        easiness = np.exp(log_easiness[question])
        logs = log_classes.copy()
        for row in range(first, last):
            who = worker[row]
            correct = 1.0 / (1.0 + np.exp(-ability[who] * easiness))
            for option in range(n_options):
                logs[option] += np.log(_chance(symbol[row], option, correct, response_rate[who], tables))
        total += _normalize(logs, gold[question], posterior[question])
        slope, curvature = 0.0, 0.0
        for row in range(first, last):
            who, index = worker[row], row - first
            product = ability[who] * easiness
            right[index], wrong[index], score[index] = _split_answer(
                symbol[row], 1.0 / (1.0 + np.exp(-product)), response_rate[who], posterior[question], tables
            )
            weight[index] = 0.25 if abs(product) < 1e-4 else np.tanh(product / 2) / (2 * product)
            slope += ability[who] * (right[index] - wrong[index]) / 2
            curvature += ability[who] ** 2 * weight[index] * (right[index] + wrong[index])
        log_easiness[question] = _maximize(log_easiness[question], slope, curvature, prior_mean, prior_variance)
        updated = np.exp(log_easiness[question])
        for row in range(first, last):
            index, line = row - first, sums[worker[row]]
            answered = right[index] + wrong[index]
            line[0] += updated * (right[index] - wrong[index]) / 2
            line[1] += updated**2 * weight[index] * answered
            line[2] += (easiness * score[index]) ** 2
            line[3] += answered
            line[4] += right[index]
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def _chance(symbol: int, option: int, correct: float, rate: float, tables: tuple[Array, Array, Array]) -> float:
    """P(symbol | truth = option) of a worker who answers with probability `rate`, and rightly with `correct`."""
    likelihood, all_options, empty = tables
    here = likelihood[symbol, option]
    elsewhere = (all_options[symbol] - here) / max(likelihood.shape[1] - 1, 1)
    chance: float = rate * (correct * here + (1.0 - correct) * elsewhere) + (1.0 - rate) * empty[symbol]
    return max(chance, 1e-300)


@njit(nogil=True, cache=True, error_model="numpy")
def _split_answer(
    symbol: int, correct: float, rate: float, posterior: Array, tables: tuple[Array, Array, Array]
) -> tuple[float, float, float]:
    """The probabilities that the answer was right and that it was wrong, and the score for α β."""
    likelihood, all_options, _ = tables
    right, wrong, score = 0.0, 0.0, 0.0
    for option in range(likelihood.shape[1]):
        here = likelihood[symbol, option]
        elsewhere = (all_options[symbol] - here) / max(likelihood.shape[1] - 1, 1)
        share = posterior[option] * rate / _chance(symbol, option, correct, rate, tables)
        right += share * correct * here
        wrong += share * (1.0 - correct) * elsewhere
        score += share * (here - elsewhere) * correct * (1.0 - correct)
    return right, wrong, score


@njit(nogil=True, cache=True, error_model="numpy")
def _normalize(logs: Array, gold: int, posterior: Array) -> float:
    """The posterior of one question, all on its truth where that is known; returns the log-likelihood."""
    if gold >= 0:
        posterior[:] = 0.0
        posterior[gold] = 1.0
        known: float = logs[gold]
        return known
    highest: float = logs.max()
    posterior[:] = np.exp(logs - highest)
    mass = posterior.sum()
    posterior /= mass
    return highest + float(np.log(mass))


@njit(nogil=True, cache=True, error_model="numpy")
def _maximize(start: float, slope: float, curvature: float, mean: float, variance: float) -> float:
    """A higher point of slope·eᵇ − curvature·e²ᵇ/2 − (b − mean)²/(2·variance), by Newton's method with halving."""
    log_easiness = start
    value = _surrogate(log_easiness, slope, curvature, mean, variance)
    for _ in range(_NEWTON_STEPS):
        easiness = np.exp(log_easiness)
        gradient = slope * easiness - curvature * easiness**2 - (log_easiness - mean) / variance
        step = gradient / (abs(slope) * easiness + 2 * curvature * easiness**2 + 1 / variance)
        step = min(max(step, -1.0), 1.0)
        if abs(step) < 1e-12:
            break
        for _half in range(_HALVINGS):
            candidate = _surrogate(log_easiness + step, slope, curvature, mean, variance)
            if candidate >= value:
                log_easiness, value = log_easiness + step, candidate
                break
            step /= 2
    return log_easiness


@njit(nogil=True, cache=True, error_model="numpy")
def _surrogate(log_easiness: float, slope: float, curvature: float, mean: float, variance: float) -> float:
    easiness: float = np.exp(log_easiness)
    return slope * easiness - curvature * easiness**2 / 2 - (log_easiness - mean) ** 2 / (2 * variance)
