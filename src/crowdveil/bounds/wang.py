"""Guarantees of private Dawid–Skene for two options (Wang & Xu, Theorems 2–4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from crowdveil.bounds.theorem import Bound, Premise, check_positive, check_probability

Floats = NDArray[np.float64]
_SMALLEST_EPSILON = math.log(85 / 15)


def effective_ability(accuracies: Sequence[float], epsilon: float) -> Floats:
    """μ̂ of (12): how often a worker's report points the right way once a consistently wrong worker is inverted.

    >>> effective_ability([1.0, 0.5, 0.0], 1.0).round(3).tolist()
    [0.731, 0.5, 0.731]
    """
    right = np.array([check_probability("accuracy", each) for each in accuracies])
    ability: Floats = _kept(epsilon) * np.maximum(right, 1 - right) + 1 / (math.exp(epsilon) + 1)
    return ability


def collective_wisdom(accuracies: Sequence[float], epsilon: float) -> float:
    """v̂ of (14): the mean of (2 μ̂ − 1)², 1 when everybody is right and unrandomised, 0 when nothing can be learnt."""
    return float(np.mean((2 * effective_ability(accuracies, epsilon) - 1) ** 2))


def projection_range(wisdom: float, n_questions: int) -> tuple[float, float]:
    """The λ for which Theorem 2 speaks (16); empty when the first number is above the second."""
    noise = math.sqrt(math.log(n_questions) / n_questions)
    return (16 * noise / wisdom if wisdom > 0 else math.inf), 0.125 - noise / 2


def label_error(
    accuracies: Sequence[float],
    n_questions: int,
    epsilon: float,
    *,
    projection: float | None = None,
    start_error: float | None = None,
) -> Bound:
    """Theorem 2: the share of wrong labels is at most 2·exp(−n·v̂/2), with probability 1 − O(1/m)."""
    n_workers, wisdom = len(accuracies), collective_wisdom(accuracies, epsilon)
    return Bound(
        "Wang–Xu Theorem 2 (labels)",
        2 * math.exp(-n_workers * wisdom / 2),
        _premises(n_workers, n_questions, wisdom, projection, start_error),
    )


def ability_error(
    accuracies: Sequence[float],
    n_questions: int,
    epsilon: float,
    *,
    projection: float | None = None,
    start_error: float | None = None,
) -> Bound:
    """Theorem 3: no ability is off by more than 6·√(log m / (m ε²)), with probability 1 − O(1/m)."""
    labels = label_error(accuracies, n_questions, epsilon, projection=projection, start_error=start_error)
    value = 6 * math.sqrt(math.log(n_questions) / n_questions) / check_positive("epsilon", epsilon)
    return Bound(
        "Wang–Xu Theorem 3 (abilities)",
        value,
        (Premise("0 < ε ≤ 1", 0 < epsilon <= 1), *labels.premises),
    )


def majority_error_floor(n_workers: int, expert_exponent: float, epsilon: float) -> Bound:
    """Theorem 4: with ⌈n^δ⌉ experts among spammers private majority voting errs at least 2·exp(−κ²⌈n^δ⌉/2)."""
    n_experts = math.ceil(n_workers**expert_exponent)
    value = 2 * math.exp(-(_kept(epsilon) ** 2) * n_experts / 2)
    majority = majority_error(n_workers, n_experts, epsilon)
    premises = (
        Premise("ε is above ln(85/15) = 1.735", epsilon > _SMALLEST_EPSILON),
        Premise("the exponent of the experts lies strictly between 0 and 1/2", 0 < expert_exponent < 0.5),
        Premise(
            f"n is large enough: majority voting really errs at least that often ({majority:.4g})", majority >= value
        ),
    )
    return Bound(
        "Wang–Xu Theorem 4 (majority is worse)",
        value,
        premises,
        "'n large enough' is not small print: the floor starts above 1/2, more than any vote can err "
        "(n = 100, exponent 1/4, ε = 2: floor .63, majority .35)",
    )


def majority_error(n_workers: int, n_experts: int, epsilon: float) -> float:
    """The exact error of private majority voting, ties counted as half, with experts among spammers (p = 1/2)."""
    expert = binom.pmf(np.arange(n_experts + 1), n_experts, math.exp(epsilon) / (math.exp(epsilon) + 1))
    needed = n_workers / 2 - np.arange(n_experts + 1)
    n_others = n_workers - n_experts
    below = binom.cdf(np.ceil(needed) - 1, n_others, 0.5)
    tie = binom.pmf(needed, n_others, 0.5)
    return float(expert @ (below + 0.5 * np.where(needed == np.round(needed), tie, 0.0)))


def _premises(
    n_workers: int, n_questions: int, wisdom: float, projection: float | None, start_error: float | None
) -> tuple[Premise, ...]:
    low, high = projection_range(wisdom, n_questions)
    log_m, spread = math.log(n_questions), math.sqrt(math.log(n_questions) / n_questions)
    inside = low <= high if projection is None else low <= projection <= high
    start = "the start is within √(log m / m) of the truth"
    return (
        Premise("n ≤ m ≤ eⁿ", n_workers <= n_questions and log_m <= n_workers),
        Premise(f"log m / n = {log_m / n_workers:.4g} is at most v̂ = {wisdom:.4g}", log_m / n_workers <= wisdom),
        Premise(f"λ lies in [{low:.4g}, {high:.4g}] (empty when the first is larger)", inside),
        Premise(f"{start} ({spread:.4g})", start_error is not None and start_error <= spread),
    )


def _kept(epsilon: float) -> float:
    return math.tanh(check_positive("epsilon", epsilon) / 2)
