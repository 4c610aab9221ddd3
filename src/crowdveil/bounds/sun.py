"""Error bounds for private truth inference on sparse answers (Sun, Dong, Wang, Yu, Qin 2018, Theorems 2, 3 and 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crowdveil.bounds.theorem import Bound, Premise, check_positive, check_probability
from crowdveil.errors import InputError

Floats = NDArray[np.float64]


def laplace_error(
    truths: Sequence[float],
    levels: Sequence[float],
    epsilon: float,
    *,
    shares: Sequence[float],
    sigmas: Sequence[float],
    weights: Sequence[float] | None = None,
    fill: float | None = None,
) -> Bound:
    """Theorem 2: expected MAE after Laplace noise of scale |Γ|/ε, ∅ replaced by `fill` (None: a uniform level).

    >>> print(laplace_error([0.0], range(10), 1, shares=[0.1], sigmas=[1.0]))
    Sun Theorem 2 (Laplace): 14.13; its premises hold
    """
    scale = len(levels) / check_positive("epsilon", epsilon)
    share, sigma, weight = _workers(shares, sigmas, weights)
    middle = float(np.mean(levels)) if fill is None else fill
    distance = np.abs(np.asarray(truths, dtype=float) - middle)
    unanswered = (1 - share) * (distance[:, None] + scale)
    answered = share * (sigma * math.sqrt(2 / math.pi) + scale)
    outside = all(truth <= min(levels) or truth >= max(levels) for truth in truths)
    premises = (
        Premise("the weights are fixed before the reports are seen", True),
        Premise(
            "∅ is replaced by a constant, or all levels lie on one side of the truth",
            fill is not None or outside,
            "crowdveil",
        ),
    )
    return Bound("Sun Theorem 2 (Laplace)", float(((unanswered + answered) @ weight).mean()), premises)


def randomized_response_error(
    truths: Sequence[float],
    levels: Sequence[float],
    epsilon: float,
    *,
    shares: Sequence[float],
    sigmas: Sequence[float],
    weights: Sequence[float] | None = None,
) -> Bound:
    """Theorem 3: expected MAE after randomised response with ∅ as a symbol, the reports averaged as they are.

    >>> round(randomized_response_error([0.0], range(10), 1, shares=[0.1], sigmas=[1.0]).value, 3)
    3.437
    """
    level, keep_weight = np.asarray(levels, dtype=float), math.exp(check_positive("epsilon", epsilon))
    share, sigma, weight = _workers(shares, sigmas, weights)
    symbols = len(level) + keep_weight
    from_empty = level.sum() / symbols
    from_level = (level.sum() + (keep_weight - 1) * level) / symbols
    truth = np.asarray(truths, dtype=float)[:, None, None]
    density = np.exp(-((level - truth) ** 2) / (2 * sigma[:, None] ** 2)) / (math.sqrt(2 * math.pi) * sigma[:, None])
    answered = share * (density * np.abs(truth - from_level)).sum(axis=2)
    unanswered = (1 - share) * np.abs(truth[:, :, 0] - from_empty)
    premises = (Premise("a report of ∅ counts as 0 in the average", False, "crowdveil"),)
    return Bound(
        "Sun Theorem 3 (randomised response)",
        float(((unanswered + answered) @ weight).mean()),
        premises,
        "Algorithm 1 leaves reports of ∅ out of the average, which raises it: in the paper's own example (levels 0..9, "
        "truth 0, share .1, ε = 1) the error is 4.43, the formula gives 3.437 and the paper prints 3.551",
    )


def randomized_response_limit(
    truth: float, levels: Sequence[float], epsilon: float, *, share: float, sigma: float
) -> float:
    """The error that Algorithm 1's average of the reports other than ∅ tends to with many workers."""
    level, keep_weight = np.asarray(levels, dtype=float), math.exp(check_positive("epsilon", epsilon))
    answer = _clipped_normal(truth, level, sigma)
    symbols = len(level) + keep_weight
    total = (1 - share) * level.sum() + share * (level.sum() + (keep_weight - 1) * float(answer @ level))
    count = (1 - share) * len(level) + share * (symbols - 1)
    return abs(float(total / count) - truth)


def factorization_error(
    n_questions: int, rank: int, n_levels: int, epsilon: float, *, answered: int, relative_weight: float = 1.0
) -> Bound:
    """Theorem 5: expected MAE of matrix factorisation; `relative_weight` is m·max(q), 1 when all weigh the same.

    >>> round(factorization_error(1000, 100, 10, 1, answered=100).value, 3)
    1.798
    """
    noise = (
        check_positive("rank", rank)
        * n_levels
        / (check_positive("n_questions", n_questions) * check_positive("epsilon", epsilon))
    )
    premises = (
        Premise(
            f"every worker answers at least rank = {rank} questions (else there is no minimiser)",
            answered >= rank,
            "crowdveil",
        ),
        Premise("the factorisation reproduces the answers before noise", rank >= n_questions, "crowdveil"),
    )
    return Bound(
        "Sun Theorem 5 (matrix factorisation)",
        relative_weight * (math.sqrt(2 / math.pi) + noise),
        premises,
        "the question profiles are drawn at random, so the released answers stay near 0 whatever was answered: in the "
        "paper's own example with truths uniform on 0..9 the error is above 4, more than twice the bound",
    )


def _workers(
    shares: Sequence[float], sigmas: Sequence[float], weights: Sequence[float] | None
) -> tuple[Floats, Floats, Floats]:
    share = np.array([check_probability("share", share) for share in shares])
    sigma = np.array([check_positive("sigma", sigma) for sigma in sigmas])
    weight = np.ones(len(share)) if weights is None else np.asarray(weights, dtype=float)
    if not len(share) == len(sigma) == len(weight):
        raise InputError(
            f"every worker needs a share, a sigma and a weight; got {len(share)}, {len(sigma)}, {len(weight)}"
        )
    return share, sigma, weight / weight.sum()


def _clipped_normal(truth: float, level: Floats, sigma: float) -> Floats:
    """P(answer = level) when a worker rounds and clips N(truth, σ²)."""
    edges = np.concatenate([[-np.inf], (level[1:] + level[:-1]) / 2, [np.inf]])
    cumulative = np.array([0.5 * math.erfc(-(edge - truth) / (sigma * math.sqrt(2))) for edge in edges])
    probabilities: Floats = np.diff(cumulative)
    return probabilities
