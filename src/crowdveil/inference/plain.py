"""The hot loops in plain NumPy: the oracle of `kernels.py`, and what runs where Numba is not installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def sort_rows(question: Array, low: int, high: int, starts: Array, rows: Array) -> None:
    """Row numbers of the questions from `low` to `high`, by question, stably."""
    chosen = np.flatnonzero((question >= low) & (question < high))
    rows[:] = chosen[np.argsort(question[chosen], kind="stable")]


def lay_out(cell: Array, question: Array, per_block: int, starts: Array, row: Array, place: Array) -> None:
    """Distribute rows over blocks of `per_block` cells, keeping the order of questions."""
    order = np.argsort(cell // per_block, kind="stable")
    row[:] = cell[order] % per_block
    place[:] = question[order]


def sweep_logs(layout: Any, table: Array, total: Array) -> None:
    """total[question] += table[cell] over all rows."""
    cell = _cells(layout)
    for option in range(table.shape[1]):
        total[:, option] += np.bincount(layout.question, table[cell, option], minlength=len(total))


def sweep_counts(layout: Any, posterior: Array, counts: Array) -> None:
    """counts[cell] += posterior[question] over all rows."""
    cell = _cells(layout)
    for option in range(counts.shape[1]):
        counts[:, option] += np.bincount(cell, posterior[layout.question, option], minlength=len(counts))


def softmax(total: Array, log_classes: Array, gold: Array, answered: Array) -> tuple[float, Array]:
    """Turn log-likelihoods into posteriors in place; the log-likelihood of all, and how much each class got."""
    total += log_classes
    known = np.flatnonzero(gold >= 0)
    right = total[known, gold[known]]
    total[known] = -np.inf
    total[known, gold[known]] = right
    best = total.max(axis=1, keepdims=True)
    np.exp(total - best, out=total)
    mass = total.sum(axis=1, keepdims=True)
    total /= mass
    objective = (best + np.log(mass))[answered].sum(dtype=np.float64)
    return float(objective), total[answered].sum(axis=0, dtype=np.float64)


def _cells(layout: Any) -> Array:
    block = np.repeat(np.arange(len(layout.ends)), np.diff(layout.ends, prepend=0))
    cells: Array = layout.row + block * layout.per_block
    return cells
