"""Guarantees of private Dawid–Skene for two options (Wang & Xu, Theorems 2–4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from crowdveil.bounds.theorem import Bound, Premise, check_positive, check_probability

Floats = NDArray[np.float64]
_SMALLEST_EPSILON = math.log(85 / 15)


def effective_ability(accuracies: Sequence[float], epsilon: float) -> Floats:
    """μ̂ of (12): how often a worker's report points the right way once a consistently wrong worker is inverted.

    >>> effective_ability([1.0, 0.5, 0.0], 1.0).round(3).tolist()
    [0.731, 0.5, 0.731]
    """
    right = np.array([check_probability("accuracy", accuracy) for accuracy in accuracies])
    ability: Floats = _contraction(epsilon) * np.maximum(right, 1 - right) + 1 / (math.exp(epsilon) + 1)
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
    """Theorem 2: the share of wrong labels is at most 2·exp(−n·v̂/2), with probability 1 − O(1/m).

    The paper's steps: the premises n ≤ m ≤ eⁿ, log m / n ≤ v̂, (15) and (16), and the bound (30) on one iteration's
    error. Ours: from (30) to (31) the paper names the range (16) of λ, which bounds the first term of the exponent
    only. The second needs 4·ln(1/λ)·√(n·log m) ≤ n·v̂/4, that is n ≥ 256·ln²(1/λ)·log m / v̂². We check the exponent
    of (30) itself, at `projection` or, without one, at the largest λ of (16), where it is smallest.
    """
    n_workers, wisdom = len(accuracies), collective_wisdom(accuracies, epsilon)
    return Bound(
        "Wang–Xu Theorem 2 (labels)",
        2 * math.exp(-n_workers * wisdom / 2),
        _premises(n_workers, n_questions, wisdom, projection, start_error),
        "the printed premises do not give the step from (30) to (31): for n = 200 workers who are always right, "
        "m = 5·10⁶ and ε = 6 all of them hold and the exponent of (30) is at least +277, where −99 is claimed. We know "
        "no crowd that breaks the statement itself. At ε = 0 the bound is 2, not 1/2 as the paper says",
    )


def proof_exponent(n_workers: int, n_questions: int, wisdom: float, projection: float) -> float:
    """The exponent of (30): Theorem 2 needs it to be at most −n·v̂/2.

    >>> round(proof_exponent(200, 5_000_000, collective_wisdom([1.0] * 200, 6.0), 0.12412))
    277
    """
    log_m = math.log(n_questions)
    first = 4 * n_workers / projection * math.sqrt(log_m / n_questions)
    second = 4 * math.log(1 / projection) * math.sqrt(n_workers * log_m)
    return first + second - n_workers * wisdom


def sufficient_workers(n_questions: int, wisdom: float, projection: float) -> float:
    """256·ln²(1/λ)·log m / v̂²: with (16), so many workers take the proof of Theorem 2 from (30) to (31)."""
    if wisdom == 0:
        return math.inf
    return 256 * math.log(1 / projection) ** 2 * math.log(n_questions) / wisdom**2


def ability_error(
    accuracies: Sequence[float],
    n_questions: int,
    epsilon: float,
    *,
    projection: float | None = None,
    start_error: float | None = None,
) -> Bound:
    """Theorem 3: no ability is off by more than 6·√(log m / (m ε²)), with probability 1 − O(1/m).

    The proof takes the labels' error from Theorem 2, so it needs our condition there as well.
    """
    labels = label_error(accuracies, n_questions, epsilon, projection=projection, start_error=start_error)
    value = 6 * math.sqrt(math.log(n_questions) / n_questions) / check_positive("epsilon", epsilon)
    return Bound(
        "Wang–Xu Theorem 3 (abilities)",
        value,
        (Premise("0 < ε ≤ 1", 0 < epsilon <= 1), *labels.premises),
        f"the proof uses Theorem 2, and there {labels.counterexample}",
    )


def majority_error_floor(n_workers: int, expert_exponent: float, epsilon: float) -> Bound:
    """Theorem 4: with ⌈n^δ⌉ experts among spammers private majority voting errs at least 2·exp(−κ²⌈n^δ⌉/2).

    The paper's steps: (37) bounds the error from below by Berry–Esseen, (38) compares that with the floor. Ours: the
    error term of (35) divides by σ³, not by σ, so (36) and (37) have .4748/√(n − ⌈n^δ⌉) where 1/16 is printed; the
    event before (37) must read "< −⌈n^δ⌉/√(n − ⌈n^δ⌉)", not "≥". With both mended the theorem stands for n large
    enough, which we check: the braces of (37) must be at least 1/8, and (38) must hold. (38) can hold from ε > 1.4992
    on, where the paper asks for 1.735. The second half of (34), that private Dawid–Skene errs less, is not part of
    this number.
    """
    n_experts = math.ceil(n_workers**expert_exponent)
    value = 2 * math.exp(-(_contraction(epsilon) ** 2) * n_experts / 2)
    majority = majority_error(n_workers, n_experts, epsilon)
    braces, right = berry_esseen_floor(n_workers, n_experts), math.exp(epsilon) / (math.exp(epsilon) + 1)
    premises = (
        Premise("ε is above ln(85/15) = 1.735", epsilon > _SMALLEST_EPSILON),
        Premise("the exponent of the experts lies strictly between 0 and 1/2", 0 < expert_exponent < 0.5),
        Premise(
            f"the braces of (37) with .4748 for 1/16, {braces:.4g}, are at least 1/8 and (38) holds: "
            f"{value:.4g} is at most {right**n_experts / 8:.4g}",
            braces >= 1 / 8 and value <= right**n_experts / 8,
            "crowdveil",
        ),
        Premise(
            f"n is large enough: majority voting really errs at least that often ({majority:.4g})",
            majority >= value,
            "crowdveil",
        ),
    )
    return Bound(
        "Wang–Xu Theorem 4 (majority is worse)",
        value,
        premises,
        "'n large enough' is not small print: the floor starts above 1/2, more than any vote can err "
        "(n = 100, exponent 1/4, ε = 2: floor .63, majority .35). (36) as printed holds for no n: half of the jump at "
        "0 alone is about .4/√(n − ⌈n^δ⌉). The second half of (34) takes Theorem 2 for granted, whose proof needs "
        "n·v̂² ≥ 64·ln²(1/λ)·log m; with an exponent below 1/2 n·v̂² stays below 4",
    )


def berry_esseen_floor(n_workers: int, n_experts: int) -> float:
    """Φ(−k/√(n − k)) − .4748/√(n − k): the braces of (37) with the constant that Berry–Esseen gives.

    σ = 1/2 and E|X|³ = 1/8, so E|X|³/σ³ = 1 and the constant .4748 of the lemma is left as it is.
    """
    n_others = n_workers - n_experts
    if n_others <= 0:
        return -math.inf
    return float(norm.cdf(-n_experts / math.sqrt(n_others))) - 0.4748 / math.sqrt(n_others)


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
        _proof_step(n_workers, n_questions, wisdom, high if projection is None else projection),
    )


def _proof_step(n_workers: int, n_questions: int, wisdom: float, projection: float) -> Premise:
    """Whether (31) follows from (30)."""
    claimed = -n_workers * wisdom / 2
    if not 0 < projection < 1:
        return Premise("(31) follows from (30) (no λ to check it with)", False, "crowdveil")
    exponent, enough = (
        proof_exponent(n_workers, n_questions, wisdom, projection),
        sufficient_workers(n_questions, wisdom, projection),
    )
    return Premise(
        f"(31) follows from (30): at λ = {projection:.4g} the exponent of (30), {exponent:+.4g}, is at most −n·v̂/2 = "
        f"{claimed:.4g} (with (16), n ≥ {enough:.4g} is enough)",
        exponent <= claimed,
        "crowdveil",
    )


def _contraction(epsilon: float) -> float:
    return math.tanh(check_positive("epsilon", epsilon) / 2)
