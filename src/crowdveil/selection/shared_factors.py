"""What workers' opinions have in common beyond chance: camps that agree among themselves and differ from each other.

A group errs less than its members where their errors cancel, and past questions show whose do. But among many groups
some cancelled by chance, on these questions and on no others, and whoever looks for the best group finds those. So
only what chance hardly makes counts: the singular values of the table of deviations above the largest that
independent ones have in 95 tables of 100 (Johnstone 2001), each as much smaller as is best on average (Gavish & Donoho
2017).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

Floats = NDArray[np.float64]
_TRACY_WIDOM = 0.98
MOST = 4000
"""Beyond so many workers and so many columns nothing is looked for: the table of all pairs would not fit."""


def shared_opinions(deviations: csr_matrix, deviation: Floats, width: int) -> Floats:
    """The coordinates of what each worker shares with others, worker × direction; none where chance explains all.

    The mean product of two workers' deviations on a new question is the product of their rows. `deviation` is the
    standard deviation of each worker's cells, `width` the columns that make a question.
    """
    n_rows, n_columns = deviations.shape
    nothing = np.zeros((n_rows, 0))
    if min(n_rows, n_columns) > MOST or min(n_rows, n_columns) < 3:
        return nothing
    scaled = (diags(1 / np.maximum(deviation, 1e-12)) @ deviations).tocsr()
    left_vectors, values = _singular(scaled)
    seen = np.diff(scaled.indptr), np.diff(scaled.tocsc().indptr)
    # Shares of options sum to nothing: their columns vary in fewer directions, and the more in each.
    free = (width - 1) / width if width > 1 else 1.0
    # Deviations that are all zero are not stored.
    a, b = (max(float(counts.max(initial=0)), 1.0) for counts in seen)
    b /= free
    significant = values**2 > _largest_by_chance(a, b)
    y = values[significant]
    shrunken = np.sqrt(np.maximum((y**2 - a - b) ** 2 - 4 * a * b, 0.0)) / y
    coordinates: Floats = left_vectors[:, significant] * shrunken * deviation[:, None] / np.sqrt(n_columns)
    return coordinates


def _largest_by_chance(rows: float, columns: float) -> float:
    """The square that the largest singular value of independent unit deviations stays below in 95 of 100 tables."""
    root = np.sqrt(max(rows - 1, 1.0)) + np.sqrt(columns)
    scatter = root * (1 / np.sqrt(max(rows - 1, 1.0)) + 1 / np.sqrt(columns)) ** (1 / 3)
    return float(root**2 + _TRACY_WIDOM * scatter)


def _singular(table: csr_matrix) -> tuple[Any, Floats]:
    """Left singular vectors and singular values, by the smaller of the two tables of products."""
    if table.shape[0] <= table.shape[1]:
        squares, left_vectors = np.linalg.eigh((table @ table.T).toarray())
        return left_vectors, np.sqrt(np.maximum(squares, 0.0))
    squares, right = np.linalg.eigh((table.T @ table).toarray())
    values = np.sqrt(np.maximum(squares, 0.0))
    return (table @ right) / np.maximum(values, 1e-12), values
