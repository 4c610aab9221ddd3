"""The hot loops, compiled; each has its plain twin in `plain.py`, which is its oracle and takes over without Numba.

Rows are laid out by blocks of *cells* (a cell is one worker giving one symbol), and by question within such a block:
while a block is swept its table of cells stays in the processor's cache and everything else is read in rising order.
Kernels release the interpreter lock, so that threads sweep different blocks of questions at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
UNROLLED = 12
"""Up to so many options a kernel is compiled for that number; beyond it, one kernel serves all."""
PIECE = 8192


@njit(nogil=True, cache=True)
def sort_rows(question: Array, low: int, high: int, starts: Array, rows: Array) -> None:
    """Row numbers of the questions from `low` to `high` by question, stably; `starts` holds one slot per question."""
    for row in range(len(question)):
        code = question[row] - low
        if 0 <= code < high - low:
            rows[starts[code]] = row
            starts[code] += 1


@njit(nogil=True, cache=True)
def lay_out(cell: Array, question: Array, per_block: int, starts: Array, row: Array, place: Array) -> None:
    """Distribute rows (sorted by question) over blocks of `per_block` cells, keeping the order of questions."""
    for index in range(len(cell)):
        block = cell[index] // per_block
        slot = starts[block]
        starts[block] = slot + 1
        row[slot] = cell[index] - block * per_block
        place[slot] = question[index]


def sweep_logs(layout: Any, table: Array, total: Array) -> None:
    """total[question] += table[cell] over all rows."""
    _logs(_unrolled(table))(layout.row, layout.question, layout.ends, layout.per_block, table, total)


def sweep_counts(layout: Any, posterior: Array, counts: Array) -> None:
    """counts[cell] += posterior[question] over all rows."""
    _counts(_unrolled(counts))(layout.row, layout.question, layout.ends, layout.per_block, posterior, counts)


def softmax(total: Array, log_classes: Array, gold: Array, answered: Array) -> tuple[float, Array]:
    """Turn log-likelihoods into posteriors in place; the log-likelihood of all, and how much each class got.

    Between two compiled loops stands NumPy's exponential, which works on many numbers at once; pieces are small
    enough to stay in the cache from one loop to the next.
    """
    classes = np.zeros(total.shape[1])
    shift, normalise = _shift(_unrolled(total)), _normalise(_unrolled(total))
    objective = 0.0
    for first in range(0, len(total), PIECE):
        part = slice(first, first + PIECE)
        piece, best = total[part], np.empty(len(total[part]), dtype=total.dtype)
        shift(piece, log_classes, gold[part], best)
        np.exp(piece, out=piece)
        mass = np.empty_like(best)
        normalise(piece, answered[part], classes, mass)
        objective += float((best[answered[part]] + np.log(mass[answered[part]])).sum(dtype=np.float64))
    return objective, classes


def _unrolled(table: Array) -> int:
    return table.shape[1] if table.shape[1] <= UNROLLED else 0


@cache
def _logs(n_options: int) -> Callable[..., None]:
    @njit(nogil=True, cache=True, boundscheck=False)
    def logs(row: Array, question: Array, ends: Array, per_block: int, table: Array, total: Array) -> None:
        width = n_options if n_options > 0 else table.shape[1]
        first = 0
        for block in range(len(ends)):
            part = table[block * per_block : (block + 1) * per_block]
            for index in range(first, ends[block]):
                cell = row[index]
                code = question[index]
                for option in range(width):
                    total[code, option] += part[cell, option]
            first = ends[block]

    return logs  # type: ignore[no-any-return]


@cache
def _counts(n_options: int) -> Callable[..., None]:
    @njit(nogil=True, cache=True, boundscheck=False)
    def counts(row: Array, question: Array, ends: Array, per_block: int, posterior: Array, counts: Array) -> None:
        width = n_options if n_options > 0 else counts.shape[1]
        first = 0
        for block in range(len(ends)):
            part = counts[block * per_block : (block + 1) * per_block]
            for index in range(first, ends[block]):
                cell = row[index]
                code = question[index]
                for option in range(width):
                    part[cell, option] += posterior[code, option]
            first = ends[block]

    return counts  # type: ignore[no-any-return]


@cache
def _shift(n_options: int) -> Callable[..., None]:
    @njit(nogil=True, cache=True, boundscheck=False)
    def shift(total: Array, log_classes: Array, gold: Array, best: Array) -> None:
        """Take the largest off each row; where the truth is known, the others become impossible."""
        width = n_options if n_options > 0 else total.shape[1]
        for code in range(len(total)):
            known = gold[code] if len(gold) else -1
            top = total[code, 0] + log_classes[0]
            for option in range(width):
                total[code, option] += log_classes[option]
                top = max(top, total[code, option])
            if known >= 0:
                top = total[code, known]
                for option in range(width):
                    total[code, option] = -np.inf
                total[code, known] = top
            for option in range(width):
                total[code, option] -= top
            best[code] = top

    return shift  # type: ignore[no-any-return]


@cache
def _normalise(n_options: int) -> Callable[..., None]:
    @njit(nogil=True, cache=True, boundscheck=False)
    def normalise(total: Array, answered: Array, classes: Array, masses: Array) -> None:
        width = n_options if n_options > 0 else total.shape[1]
        for code in range(len(total)):
            mass = total[code, 0]
            for option in range(1, width):
                mass += total[code, option]
            masses[code] = mass
            share = 1 / mass
            counted = 1.0 if answered[code] else 0.0
            for option in range(width):
                total[code, option] *= share
                classes[option] += total[code, option] * counted

    return normalise  # type: ignore[no-any-return]
