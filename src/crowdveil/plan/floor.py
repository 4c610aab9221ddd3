"""What no mechanism can pass: the information that ε lets through, whatever is done on the device and on the server."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, linprog

from crowdveil.domain import Scale
from crowdveil.plan.population import prior_spread, sampling_error
from crowdveil.plan.setting import Setting

Floats = NDArray[np.float64]
_MOST_SYMBOLS = 40


@dataclass(frozen=True, slots=True)
class Limit:
    """The floor, in words what it is, and the number it stands beside: that of a guess, in the same measure."""

    value: float
    beside: float
    meaning: str


def limit(setting: Setting, *, population: bool) -> Limit:
    """The floor that belongs to this kind of study."""
    if population:
        meaning = "the error of the same people asked without privacy"
        return Limit(sampling_error(setting), prior_spread(setting.domain), meaning)
    if isinstance(setting.domain, Scale):
        meaning = "the least standard deviation of any unbiased estimate at this ε"
        return Limit(scale_floor(setting), setting.domain.range / math.sqrt(12), meaning)
    return Limit(choice_floor(setting), setting.prior_error, "the least error rate of any method at this ε")


def scale_floor(setting: Setting) -> float:
    """The least standard deviation of an unbiased estimate of a mid-scale truth, skills known, over all channels."""
    middle = float(setting.domain.numbers.mean())
    step = 1e-4 * float(np.ptp(setting.domain.numbers))
    low, at, high = np.moveaxis(
        setting.crowd.answers(setting.domain, np.array([middle - step, middle, middle + step])), 1, 0
    )
    information = 0.0
    slopes = (high - low) / (2 * step)
    for each in setting.crowd.real:
        weight, p, slope = setting.crowd.shares[each], at[each], slopes[each]
        if setting.protect_participation:
            p, slope = np.append(setting.share * p, 1 - setting.share), np.append(setting.share * slope, 0.0)
        information += weight * staircase_information(p, slope, setting.epsilon)
    return math.inf if information <= 0 else 1 / math.sqrt(setting.reports_per_question * information)


def staircase_information(p: Floats, slope: Floats, epsilon: float) -> float:
    """The largest Fisher information an ε-private report can hold about the parameter that moves p along slope.

    An optimal channel has columns θ·(e^ε on a set of symbols, 1 elsewhere) (Kairouz, Oh & Viswanath 2014), so it is
    a linear program over such sets. Ordered by their score slope/p, runs of symbols and the rest of such runs suffice:
    a set is worth more the more one-sided its scores are (tested against all sets on small domains).
    """
    p, slope = _grouped(p, slope)
    gain, sets = math.expm1(epsilon), _runs(np.argsort(slope / np.maximum(p, 1e-300), kind="stable"))
    value = (gain * sets @ slope) ** 2 / (1 + gain * sets @ p)
    largest = float(value.max())
    if largest <= 0:
        return 0.0
    solved = linprog(-value / largest, A_eq=(1 + gain * sets).T, b_eq=np.ones(len(p)))
    return float(-solved.fun) * largest


def _grouped(p: Floats, slope: Floats) -> tuple[Floats, Floats]:
    """Symbols of nearly the same score as one, where there are too many to try every run of them."""
    if len(p) <= _MOST_SYMBOLS:
        return p, slope
    order = np.argsort(slope / np.maximum(p, 1e-300), kind="stable")
    group = np.minimum((np.cumsum(np.sqrt(p[order])) / np.sqrt(p).sum() * _MOST_SYMBOLS).astype(int), _MOST_SYMBOLS - 1)
    return tuple(np.bincount(group, part[order], minlength=_MOST_SYMBOLS) for part in (p, slope))  # type: ignore[return-value]


def _runs(order: NDArray[np.int64]) -> Floats:
    """Every run of symbols in this order, and its complement, as rows of 0 and 1."""
    n = len(order)
    start, end = np.triu_indices(n)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    runs = (place >= start[:, None]) & (place <= end[:, None])
    return np.concatenate([runs, ~runs]).astype(float)


def choice_floor(setting: Setting) -> float:
    """The least error rate on choices, skills known, for any ε-private reports (Fano with a contraction).

    An ε-private channel lets through at most tanh²(ε/2) of the information an answer holds about the truth (the
    contraction of Kullback–Leibler divergence; Asoodeh & Zhang 2022), so all reports together hold at most
    N·s·tanh²(ε/2)·I(truth; answer) nats, and an error rate e needs H(truth | reports) ≤ h(e) + e·ln(k − 1).
    """
    answers = setting.crowd.answers(setting.domain, setting.truths)
    information = float(setting.crowd.shares @ np.array([_mutual_information(table) for table in answers]))
    allowed = setting.n_workers * setting.share * math.tanh(setting.epsilon / 2) ** 2 * information
    k = setting.domain.size
    left = math.log(k) - allowed
    if left <= 0:
        return 0.0
    prior = 1 - 1 / k
    return (
        float(brentq(lambda e: _entropy(e) + e * math.log(max(k - 1, 1)) - left, 1e-15, prior))
        if left < math.log(k)
        else prior
    )


def _mutual_information(table: Floats) -> float:
    """I(truth; answer) in nats for evenly spread truths; rows are truths."""
    average = table.mean(axis=0)
    ratio = np.where(table > 0, table / np.where(average > 0, average, 1.0), 1.0)
    return float((table * np.log(ratio)).sum() / len(table))


def _entropy(error: float) -> float:
    return -sum(p * math.log(p) for p in (error, 1 - error) if 0 < p < 1)
