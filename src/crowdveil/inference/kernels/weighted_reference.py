"""The loops of `row_kernels.py` in plain NumPy: their oracle, and what runs where Numba is not installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def weighted_sums(
    question: Array, worker: Array, value: Array, share: Array, weight: Array, n_questions: int
) -> tuple[Array, Array]:
    """By question: the sums of weight × value and of weight × share."""
    row_weight = weight[worker]
    return _sums(question, row_weight * value, n_questions), _sums(question, row_weight * share, n_questions)


def residual_sums(
    question: Array, worker: Array, value: Array, share: Array, weight: Array, mean: Array, mass: Array
) -> tuple[Array, Array, Array]:
    """By worker: the sums of squared residuals, of 1 less each row's pull on its own mean, and the rows."""
    residual = value - share * mean[question]
    shares, masses = weight[worker] * share, mass[question]
    pull = np.clip(np.divide(shares, masses, out=np.ones_like(shares), where=masses > 1e-12), 0.0, 1.0)
    ones = np.ones(len(worker))
    squares, freedom, count = (_sums(worker, each, len(weight)) for each in (residual**2, 1 - pull, ones))
    return squares, freedom, count


def tally(question: Array, worker: Array, votes: Array, worth: Array, weight: Array, n_questions: int) -> Array:
    """By question and option: the sum of votes, each counted by its worker's weight and its own worth."""
    row_weight = weight[worker] * worth
    return np.stack([_sums(question, row_weight * column, n_questions) for column in votes.T], axis=1)


def agreements(
    question: Array, worker: Array, votes: Array, worth: Array, value: Array, n_workers: int
) -> tuple[Array, Array]:
    """By worker: how much of the votes went to the values, and how much was voted."""
    agreed = votes[np.arange(len(question)), value[question]]
    return _sums(worker, agreed * worth, n_workers), _sums(worker, votes.sum(axis=1) * worth, n_workers)


def _sums(codes: Array, weights: Array, size: int) -> Array:
    return np.bincount(codes, weights, minlength=size).astype(np.float64)
