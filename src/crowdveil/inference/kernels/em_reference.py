"""The hot loops in plain NumPy: the oracle of `kernels.py`, and what runs where Numba is not installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
LEFT = 1e-3
"""What is left at least of a count once the report itself is taken out."""


def sort_rows(question: Array, low: int, high: int, starts: Array, rows: Array) -> None:
    """Row numbers of the questions from `low` to `high`, by question, stably."""
    chosen = np.flatnonzero((question >= low) & (question < high))
    rows[:] = chosen[np.argsort(question[chosen], kind="stable")]


def take(column: Array, rows: Array) -> Array:
    """column[rows]."""
    taken: Array = column[rows]
    return taken


def count_tiles(cell: Array, question: Array, across: int, cell_bits: int, question_bits: int, sizes: Array) -> None:
    """How many rows each tile has."""
    tile = (question >> question_bits).astype(np.int64) * across + (cell >> cell_bits)
    sizes += np.bincount(tile, minlength=len(sizes))


def lay_out(cell: Array, question: Array, layout: Any) -> None:
    """Distribute rows over the tiles."""
    tile = (question >> layout.question_bits).astype(np.int64) * layout.n_across + (cell >> layout.cell_bits)
    order = np.argsort(tile, kind="stable")
    layout.cell[: len(order)] = cell[order] & ((1 << layout.cell_bits) - 1)
    layout.question[: len(order)] = question[order] & ((1 << layout.question_bits) - 1)


def sweep_logs(layout: Any, table: Array, total: Array) -> None:
    """total[question] = the sum of table[cell] over the question's rows."""
    cell, question = _rows(layout)
    for option in range(table.shape[1]):
        total[:, option] = np.bincount(question, table[cell, option], minlength=len(total))


def sweep_posterior(layout: Any, table: Array, log_classes: Array, gold: Array, total: Array) -> tuple[float, Array]:
    """The posteriors from the logarithms of the cells; what `softmax` returns."""
    sweep_logs(layout, table, total)
    return softmax(total, log_classes, gold, layout.answered)


def sweep_counts(layout: Any, posterior: Array, counts: Array) -> None:
    """counts[cell] = the sum of posterior[question] over the cell's rows."""
    cell, question = _rows(layout)
    for option in range(counts.shape[1]):
        counts[:, option] = np.bincount(cell, posterior[question, option], minlength=len(counts))


def sweep_apart(layout: Any, posterior: Array, own: Array, seen: Array, total: Array) -> None:
    """total[question] += log (1 − p·own[cell]) / (1 − p·seen[cell]) over all rows, p the question's posterior."""
    cell, question = _rows(layout)
    for option in range(total.shape[1]):
        p = posterior[question, option]
        left = np.maximum(1 - p * own[cell, option], LEFT) / np.maximum(1 - p * seen[cell, option], LEFT)
        total[:, option] += np.bincount(question, np.log(left), minlength=len(total))


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


def log_shares(counts: Array, prior: Array, logs: Array, seen: Array) -> None:
    """Logarithms of each worker's shares of answers at each truth, and how many answers they are shares of."""
    known = counts.astype(np.float64) + prior
    total = known.sum(axis=1, keepdims=True)
    shares = np.divide(known, total, out=np.full_like(known, 1.0 / counts.shape[1]), where=total > 0)
    logs[:] = np.log(np.maximum(shares, np.finfo(logs.dtype).tiny))
    seen[:] = total[:, 0]


def column_sums(table: Array) -> Array:
    """The sum of each column in double precision."""
    sums: Array = table.sum(axis=0, dtype=np.float64)
    return sums


def _rows(layout: Any) -> tuple[Array, Array]:
    """The cell and the question of every row."""
    tile = np.repeat(np.arange(len(layout.starts) - 1), np.diff(layout.starts))
    below, across = np.divmod(tile, layout.n_across)
    n_rows = len(tile)
    return (
        layout.cell[:n_rows] + (across << layout.cell_bits),
        layout.question[:n_rows] + (below << layout.question_bits),
    )
