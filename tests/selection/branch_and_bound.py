"""The best group of a small crowd by branch and bound: the oracle that heuristics are measured against.

Workers are decided on one after another. A branch is cut where even its most hopeful group errs no less than the best
one so far. For normalised weights p of independent parts with variances a and covariances o with the crowd's average,

    RMSE²  ≥  Σ p² a − 2 Σ p o + c  ≥  1 / Σ (1/a) − 2 max o + c,

since bias and shared factors only add, Σ p² a is smallest at p ∝ 1/a, and Σ (1/a) is at most the fractional knapsack's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.selection import Candidates, History

Array = NDArray[Any]


def squared_error(history: History, group: list[int], *, weighted: bool) -> float:
    """E(estimate − average opinion)², from the law of the next deviations; candidates are the history's workers."""
    if not group:
        return math.inf
    opinions, n = history.opinions, history.n_workers
    shares = np.zeros(n)
    shares[group] = 1 / (opinions.stranger + history.noise[group]) if weighted else 1.0
    shares /= shares.sum()
    own = opinions.scatter - (opinions.camp**2).sum(axis=1)
    shared = opinions.camp.T @ shares
    bias = float(shares @ opinions.leaning)
    return float(bias**2 + shares**2 @ history.noise + shared @ shared + (shares - 1 / n) ** 2 @ own)


def best_group(history: History, candidates: Candidates, budget: float, *, weighted: bool) -> tuple[float, list[int]]:
    """The least squared error that the money buys, and the group that has it."""
    own = history.opinions.scatter - (history.opinions.camp**2).sum(axis=1)
    alone = history.noise + own
    constant = float(own.sum()) / history.n_workers**2
    information = 1 / np.maximum(alone, 1e-12)
    able = np.flatnonzero(candidates.can_pay())
    order = able[np.argsort(-information[able] / candidates.pay[able], kind="stable")].tolist()
    best: tuple[float, list[int]] = (math.inf, [])

    def bound(depth: int, chosen: list[int], money: float) -> float:
        total = float(information[chosen].sum())
        largest = float(own[[*chosen, *order[depth:]]].max(initial=0.0)) / history.n_workers
        for row in order[depth:]:
            part = min(money / candidates.pay[row], 1.0)
            total += part * information[row]
            money -= part * candidates.pay[row]
        return 1 / max(total, 1e-12) - 2 * largest + constant

    def branch(depth: int, chosen: list[int], money: float) -> None:
        nonlocal best
        error = squared_error(history, chosen, weighted=weighted)
        if error < best[0]:
            best = (error, chosen)
        if depth == len(order) or bound(depth, chosen, money) >= best[0]:
            return
        row = order[depth]
        if candidates.pay[row] <= money + 1e-9:
            branch(depth + 1, [*chosen, row], money - float(candidates.pay[row]))
        branch(depth + 1, chosen, money)

    branch(0, [], budget)
    return best
