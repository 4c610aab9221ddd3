"""The information floor: what no method can learn from private reports, and no mechanism can let through.

For scales it is a Cramér–Rao bound: the Fisher information that one report holds about the truth, summed over the
reports. For choices it is Fano's inequality: the mutual information between truth and reports bounds the error rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, linprog
from scipy.special import ndtr

from crowdveil.channel import Channel
from crowdveil.channel.encoding import Rotate
from crowdveil.domain import Scale
from crowdveil.estimate import Floor

Floats = NDArray[np.float64]
NO_GAIN = 0.95
"""Where even the floor is above this share of the prior's error, reports are as good as none."""


def answer_law(truth: float, sigma: float, scale: Scale) -> tuple[Floats, Floats]:
    """P(answer = level) for the level nearest to N(truth, σ²), clipped to the scale, and its slope in the truth."""
    edges = float(scale.low) + (np.arange(scale.size - 1) + 0.5) * float(scale.step)
    z = (edges - truth) / sigma
    below = np.concatenate([[0.0], ndtr(z), [1.0]])
    density = np.concatenate([[0.0], -np.exp(-(z**2) / 2) / (sigma * math.sqrt(2 * math.pi)), [0.0]])
    return np.diff(below), np.diff(density)


def with_empty(law: tuple[Floats, Floats], share: float) -> tuple[Floats, Floats]:
    """The same law when a question is answered with probability `share` and ∅ otherwise."""
    p, slope = law
    return np.append(share * p, 1 - share), np.append(share * slope, 0.0)


def staircase_information(p: Floats, slope: Floats, epsilon: float) -> float:
    """The largest Fisher information an ε-private report can hold about the parameter that moves p along slope.

    An optimal channel has columns θ·(e^ε on a set of symbols, 1 elsewhere) (Kairouz, Oh & Viswanath 2014), so it is
    a linear program over such sets. Ordered by their score slope/p, runs of symbols and the rest of such runs suffice:
    a set is worth more the more one-sided its scores are (tested against all sets on small domains).
    """
    gain, sets = math.expm1(epsilon), _runs(np.argsort(slope / np.maximum(p, 1e-300), kind="stable"))
    value = (gain * sets @ slope) ** 2 / (1 + gain * sets @ p)
    largest = float(value.max())
    if largest <= 0:
        return 0.0
    solved = linprog(-value / largest, A_eq=(1 + gain * sets).T, b_eq=np.ones(len(p)))
    return float(-solved.fun) * largest


def _runs(order: NDArray[np.int64]) -> Floats:
    """Every run of symbols in this order, and its complement, as rows of 0 and 1."""
    n = len(order)
    start, end = np.triu_indices(n)
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    runs = (rank >= start[:, None]) & (rank <= end[:, None])
    return np.concatenate([runs, ~runs]).astype(float)


def smallest_deviation(
    scale: Scale, epsilon: float, *, n_workers: int, sigmas: Sequence[float], share: float, truth: float | None = None
) -> float:
    """The least standard deviation of an unbiased estimate of one truth at cell-ε privacy with ∅ protected.

    Equally many workers have each of the `sigmas`, all known; the truth is mid-scale unless given.

    >>> [round(smallest_deviation(Scale(0, 9), e, n_workers=2000, sigmas=(1, 5), share=0.1), 2) for e in (1, 3)]
    [0.72, 0.19]
    """
    at = float(scale.low + scale.high) / 2 if truth is None else truth
    laws = [with_empty(answer_law(at, sigma, scale), share) for sigma in sigmas]
    information = float(np.mean([staircase_information(p, slope, epsilon) for p, slope in laws]))
    return math.inf if information <= 0 else 1 / math.sqrt(n_workers * information)


def channel_information(channel: Channel, p: Floats, slope: Floats) -> float:
    """The Fisher information that a report through this channel holds about what moves p along slope."""
    if isinstance(channel.form, Rotate):
        keep, lie = channel.form.keep / 2.0**channel.bits, channel.form.lie / 2.0**channel.bits
        chance, move = lie * p.sum() + (keep - lie) * p, lie * slope.sum() + (keep - lie) * slope
    else:
        chance, move = p @ channel.table, slope @ channel.table
    return float(np.divide(move**2, chance, out=np.zeros_like(move), where=chance > 1e-300).sum())


def scale_floor(
    channels: Sequence[Channel],
    reports_per_question: Floats,
    scale: Scale,
    *,
    sigmas: Floats,
    weights: Floats,
    share: float,
    centre: float,
    spread: float,
    known: float = 0.0,
) -> Floor:
    """The floor of actual reports: workers of the given σ mix, truths around `centre` with standard deviation `spread`.

    `reports_per_question` counts the reports through each channel. The information is averaged over truths within one
    standard deviation of the centre, because near an end of the scale less can be seen than in its middle. `known` is
    the information that an estimate has beside the reports: none, and the floor is that of unbiased estimates
    (Cramér–Rao); 1/spread² where the law of the truths is known, too (van Trees 1968).
    """
    telling = np.zeros(len(channels))
    for truth in centre + spread * np.array([-1.0, 0.0, 1.0]):
        for index, channel in enumerate(channels):
            laws = [answer_law(float(truth), float(sigma), scale) for sigma in sigmas]
            if channel.protects_participation:
                laws = [with_empty(law, share) for law in laws]
            telling[index] += float(np.dot(weights, [channel_information(channel, *law) for law in laws])) / 3
    information = float(reports_per_question @ telling)
    smallest = math.inf if information + known <= 0 else 1 / math.sqrt(information + known)
    # With the law known any report lowers the floor, so that it has to do so by more than next to nothing.
    largest = spread * (NO_GAIN if known else 1.0)
    needed = 1 / largest**2 - known if largest > 0 else math.inf
    return _floor(smallest, spread, "standard deviation", information > needed, telling, needed)


def fano_floor(channels: Sequence[Channel], reports_per_question: Floats, classes: NDArray[Any]) -> Floor:
    """The least error rate on choices even if every worker knew the truth (Fano).

    `reports_per_question` counts the reports through each channel.
    """
    classes = np.asarray(classes, dtype=np.float64)
    telling = np.array([mutual_information(channel, classes) for channel in channels])
    allowed, prior_error = float(reports_per_question @ telling), 1.0 - float(classes.max())
    smallest, gain = min(least_error(classes, allowed), prior_error), NO_GAIN * prior_error
    # Nats that lower the error to `gain`: Fano's inequality as an equation.
    open_to_doubt = entropy(np.array([gain, 1 - gain])) + gain * math.log(max(len(classes) - 1, 1))
    needed = max(entropy(classes) - open_to_doubt, 0.0)
    return _floor(smallest, prior_error, "error rate", allowed > 0 and smallest < gain, telling, needed)


def mutual_information(channel: Channel, classes: Floats) -> float:
    """Nats that one report tells about an answer that is always right, for truths with these shares."""
    if channel.is_identity:
        return entropy(classes)
    table = channel.table[: len(classes)]
    average = np.maximum(classes @ table, 1e-300)
    ratio = np.divide(table, average, out=np.ones_like(table), where=table > 0)
    return float(classes @ (table * np.log(ratio)).sum(axis=1))


def least_error(classes: Floats, allowed: float) -> float:
    """Fano: an error rate e needs H(truth) − information ≤ h(e) + e·ln(k − 1)."""
    k, equivocation = len(classes), entropy(classes) - allowed
    if equivocation <= 1e-12 or k < 2:
        return 0.0
    most = 1 - 1 / k

    def excess(error: float) -> float:
        return entropy(np.array([error, 1 - error])) + error * math.log(max(k - 1, 1)) - equivocation

    return most if excess(most) <= 0 else float(brentq(excess, 1e-15, most))


def entropy(shares: Floats) -> float:
    """Entropy in nats."""
    positive = shares[shares > 0]
    return float(-(positive * np.log(positive)).sum())


def _floor(smallest: float, prior: float, measure: str, informative: bool, telling: Floats, needed: float) -> Floor:
    sentence = (
        f"the least {measure} any method could have from these reports is {smallest:.3g}, without them {prior:.3g}"
    )
    if not informative:
        sentence += ": they cannot say more than the prior, so the estimate is the prior, questions with far more apart"
    return Floor(smallest, prior, informative, sentence, tuple(telling.tolist()), needed)
