"""Hot loops over rows by question, compiled: weighted means and weighted votes; `row_plain.py` is their oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]


@njit(nogil=True, cache=True, error_model="numpy")
def weighted_sums(
    question: Array, worker: Array, value: Array, share: Array, weight: Array, n_questions: int
) -> tuple[Array, Array]:
    """By question: the sums of weight × value and of weight × share."""
    total, mass = np.zeros(n_questions), np.zeros(n_questions)
    for row in range(len(question)):
        row_weight = weight[worker[row]]
        total[question[row]] += row_weight * value[row]
        mass[question[row]] += row_weight * share[row]
    return total, mass


@njit(nogil=True, cache=True, error_model="numpy")
def residual_sums(
    question: Array, worker: Array, value: Array, share: Array, weight: Array, mean: Array, mass: Array
) -> tuple[Array, Array, Array]:
    """By worker: the sums of squared residuals, of 1 less each row's pull on its own mean, and the rows."""
    squares, freedom, count = np.zeros(len(weight)), np.zeros(len(weight)), np.zeros(len(weight))
    for row in range(len(question)):
        what, who = question[row], worker[row]
        squares[who] += (value[row] - share[row] * mean[what]) ** 2
        pull = weight[who] * share[row] / mass[what] if mass[what] > 1e-12 else 1.0
        freedom[who] += 1 - min(max(pull, 0.0), 1.0)
        count[who] += 1
    return squares, freedom, count


@njit(nogil=True, cache=True, error_model="numpy")
def tally(question: Array, worker: Array, votes: Array, worth: Array, weight: Array, n_questions: int) -> Array:
    """By question and option: the sum of votes, each counted by its worker's weight and its own worth."""
    sums = np.zeros((n_questions, votes.shape[1]))
    for row in range(len(question)):
        row_weight = weight[worker[row]] * worth[row]
        for option in range(votes.shape[1]):
            sums[question[row], option] += row_weight * votes[row, option]
    return sums


@njit(nogil=True, cache=True, error_model="numpy")
def agreements(
    question: Array, worker: Array, votes: Array, worth: Array, value: Array, n_workers: int
) -> tuple[Array, Array]:
    """By worker: how much of the votes went to the values, and how much was voted."""
    agreed, answered = np.zeros(n_workers), np.zeros(n_workers)
    for row in range(len(question)):
        # Where there is no value (-1) there is no row either.
        agreed[worker[row]] += votes[row, value[question[row]]] * worth[row]
        all_votes = 0.0
        for option in range(votes.shape[1]):
            all_votes += votes[row, option]
        answered[worker[row]] += all_votes * worth[row]
    return agreed, answered
