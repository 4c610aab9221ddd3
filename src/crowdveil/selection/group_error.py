"""The expected error of a group, kept up to date while it grows: one matrix–vector product per step.

RMSE²(S ∪ {i}) needs |D + d_i|² = |D|² + 2 D·d_i + |d_i|², and only D·d_i changes from step to step. Gains can rise as
the group grows, so skipping candidates by stale gains (lazy evaluation) would be wrong here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from crowdveil.selection.candidates import Candidates
from crowdveil.selection.history import Floats, History


class GroupError:
    """Expected squared errors of a growing group, for candidates in the order of their table.

    `as_printed` drops the covariance with the crowd's average as (4.12) does; the result can then fall below zero.
    """

    def __init__(self, history: History, candidates: Candidates, *, as_printed: bool = False) -> None:
        known = {str(worker): row for row, worker in enumerate(history.workers)}
        rows = np.array([known.get(str(worker), -1) for worker in candidates.workers], dtype=np.int64)
        new = rows < 0
        stranger = _noise_of_strangers(history, candidates, rows)
        self._rest = vstack([history.rest, csr_matrix((1, history.n_columns))]).tocsr()[rows]
        self._mean = np.where(new, 0.0, history.mean[rows])
        self._norm = np.where(new, 0.0, history.norm[rows])
        self._own = np.where(new, stranger + history.unseen_variance, history.own[rows])
        self._shared = np.zeros(len(rows)) if as_printed else np.where(new, 0.0, history.shared[rows])
        self._base, self._n_columns = history.base, history.n_columns
        self._sum = np.zeros(history.n_columns)
        self._own_sum, self._shared_sum, self.size = 0.0, 0.0, 0

    def with_each(self) -> Floats:
        """RMSE² of the group with each candidate added to it."""
        inner = self._rest @ self._sum + self._mean * self._sum.sum()
        squares = self._sum @ self._sum + 2 * inner + self._norm
        size = self.size + 1
        own, shared = self._own_sum + self._own, self._shared_sum + self._shared
        error: Floats = squares / (self._n_columns * size**2) + own / size**2 + 2 * shared / size - self._base
        return error

    def add(self, chosen: int) -> None:
        row = self._rest[chosen]
        self._sum += self._mean[chosen]
        self._sum[row.indices] += row.data
        self._own_sum += self._own[chosen]
        self._shared_sum += self._shared[chosen]
        self.size += 1

    def squared(self) -> float:
        """RMSE² of the group as it is; infinite for nobody."""
        if not self.size:
            return float("inf")
        squares = self._sum @ self._sum / (self._n_columns * self.size**2)
        return float(squares + self._own_sum / self.size**2 + 2 * self._shared_sum / self.size - self._base)

    def rmse(self) -> float:
        """Its root; a squared error estimated below zero counts as zero."""
        return float(np.sqrt(max(self.squared(), 0.0)))


def _noise_of_strangers(history: History, candidates: Candidates, rows: NDArray[Any]) -> Floats:
    """For workers without history: the noise of known workers at their level, or of all."""
    known = rows >= 0
    overall = float(history.noise[rows[known]].mean()) if known.any() else float(history.noise.mean())
    noise = np.full(len(rows), overall)
    levels = np.array([str(level) for level in candidates.level])
    for level in np.unique(levels[~known]):
        peers = rows[known & (levels == level)]
        if len(peers):
            noise[levels == level] = history.noise[peers].mean()
    return noise
