"""Hot loops that turn sums into shares, compiled: posteriors of questions and confusions of workers.

Part of `kernels.py`; the plain twins are in `plain.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from crowdveil.inference.kernels.bincount import pieces
from crowdveil.inference.kernels.simd import add_row
from crowdveil.inference.parallel import parallel_slices

Array = NDArray[Any]
UNROLLED = 12
"""Up to so many options a kernel is compiled for that number; beyond it, one kernel serves all."""
PIECE = 8192
_TURNS = 4
_TOGETHER = 32


def unrolled(table: Array) -> int:
    return table.shape[1] if table.shape[1] <= UNROLLED else 0


def softmax(total: Array, log_classes: Array, gold: Array, answered: Array) -> tuple[float, Array]:
    """Turn log-likelihoods into posteriors in place; the log-likelihood of all, and how much each class got.

    Between two compiled loops stands NumPy's exponential, which works on many numbers at once; pieces are small
    enough to stay in the cache from one loop to the next.
    """
    n_options = unrolled(total)
    classes = np.zeros((_TURNS, total.shape[1]))
    objective = 0.0
    for part in pieces(len(total), PIECE):
        piece, best = total[part], np.empty(part.stop - part.start, dtype=total.dtype)
        _shift(n_options)(piece, log_classes, gold[part], best)
        np.exp(piece, out=piece)
        objective += _normalise(n_options)(piece, best, answered[part])
        # A loop of its own: a row just written number by number cannot yet be read as one vector.
        _class_sums(n_options)(piece, answered[part], classes)
    return objective, classes.sum(axis=0)


def log_shares(counts: Array, prior: Array, logs: Array, seen: Array) -> None:
    """Logarithms of each worker's shares of answers at each truth, and how many answers they are shares of.

    All tables are worker × answer × truth; `prior` is added to every worker's counts.
    """
    row = max(1, counts.shape[1] * counts.shape[2])
    shares, smallest = _shares(unrolled(prior)), np.finfo(logs.dtype).tiny

    def work(workers: slice) -> None:
        factor = np.empty(counts.shape[2], dtype=logs.dtype)
        for part in pieces(workers.stop, max(1, 4 * PIECE // row), workers.start):
            shares(counts[part], prior, smallest, factor, logs[part], seen[part])
            np.log(logs[part], out=logs[part])

    parallel_slices(work, len(counts), row)


def column_sums(table: Array) -> Array:
    """The sum of each column in double precision."""
    sums = np.zeros(table.shape[1])
    _column_sums(table, sums)
    return sums


@njit(nogil=True, cache=True)
def _column_sums(table: Array, sums: Array) -> None:
    for index in range(len(table)):
        for column in range(table.shape[1]):
            sums[column] += table[index, column]


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
def _normalise(n_options: int) -> Callable[..., float]:
    @njit(nogil=True, cache=True, boundscheck=False, error_model="numpy")
    def normalise(total: Array, best: Array, answered: Array) -> float:
        width = n_options if n_options > 0 else total.shape[1]
        objective, product = 0.0, 1.0
        one = total.dtype.type(1)
        for code in range(len(total)):
            mass = total[code, 0]
            for option in range(1, width):
                mass += total[code, option]
            share = one / mass
            for option in range(width):
                total[code, option] *= share
            if answered[code]:
                objective += best[code]
                # A mass is between 1 and the number of options, so many of them have one logarithm together.
                product *= mass
            if code % _TOGETHER == 0:
                objective += math.log(product)
                product = 1.0
        return objective + math.log(product)

    return normalise  # type: ignore[no-any-return]


@cache
def _class_sums(n_options: int) -> Callable[..., None]:
    @njit(nogil=True, cache=True, boundscheck=False)
    def class_sums(posterior: Array, answered: Array, classes: Array) -> None:
        for code in range(len(posterior)):
            if answered[code]:
                if n_options > 0:
                    # Sums take turns, so that none waits for the one before.
                    add_row(classes, code % _TURNS, posterior, code, n_options)
                else:
                    for option in range(posterior.shape[1]):
                        classes[0, option] += posterior[code, option]

    return class_sums  # type: ignore[no-any-return]


@cache
def _shares(n_options: int) -> Callable[..., None]:
    @njit(nogil=True, cache=True, boundscheck=False, error_model="numpy")
    def shares(counts: Array, prior: Array, smallest: float, factor: Array, shares: Array, seen: Array) -> None:
        width = n_options if n_options > 0 else counts.shape[2]
        n_answers = counts.shape[1]
        for worker in range(len(counts)):
            for option in range(width):
                total = 0.0
                for answer in range(n_answers):
                    total += counts[worker, answer, option] + prior[answer, option]
                seen[worker, option] = total
                factor[option] = 1 / total
            for answer in range(n_answers):
                for option in range(width):
                    known = shares.dtype.type(counts[worker, answer, option] + prior[answer, option])
                    share = known * factor[option]
                    if not share < 2:
                        # Nothing was seen, so that 0 · ∞ came out; a share itself is at most 1 and some rounding.
                        share = shares.dtype.type(1 / n_answers)
                    shares[worker, answer, option] = max(share, smallest)

    return shares  # type: ignore[no-any-return]
