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
    A group that is there can be measured both ways.
    """

    def __init__(self, history: History, candidates: Candidates, *, as_printed: bool = False) -> None:
        # Who is listed without a report is a stranger too: nothing tells their noise but their level.
        reported = np.diff(history.rest.indptr) > 0
        known = {str(worker): row for row, worker in enumerate(history.workers) if reported[row]}
        rows = np.array([known.get(str(worker), -1) for worker in candidates.workers], dtype=np.int64)
        new = rows < 0
        stranger = _noise_of_strangers(history, candidates, rows)
        self._rest = vstack([history.rest, csr_matrix((1, history.n_columns))]).tocsr()[rows]
        self._seen = csr_matrix(
            (np.ones_like(self._rest.data), self._rest.indices, self._rest.indptr), self._rest.shape
        )
        self._complete = self._rest.nnz == len(rows) * history.n_columns
        self._mean = np.where(new, 0.0, history.mean[rows])
        self._noise = np.where(new, stranger, history.noise[rows])
        self._own = np.where(new, stranger + history.unseen_variance, history.own[rows])
        # Twice the covariance of a group's noise with that of the crowd's average; (4.12) has none of it.
        self._covariance = 2.0 / history.crowd
        self._shared = (0.0 if as_printed else 1.0) * self._covariance
        self._average_noise, self._n_columns = history.average_noise, history.n_columns
        alone = self._over_seen(self._shared, -self._average_noise)
        self._alone = np.where(new, 0.0, history.norm[rows]) + self._noise * alone[:, 0] + alone[:, 1]
        self._sum, self._seen_sum, self._noise_sum = (np.zeros(history.n_columns) for _ in range(3))
        self._own_sum, self.size = 0.0, 0

    def with_each(self) -> Floats:
        """RMSE² of the group with each candidate added to it."""
        inner = self._rest @ self._sum + self._mean * self._sum.sum()
        # (s_j + 1)(V_j + v) and (s_j + 1)², less what the group has and what the candidate has alone.
        mixed = self._over_seen(
            self._shared * self._seen_sum, self._shared * self._noise_sum - 2 * self._seen_sum * self._average_noise
        )
        past = self._past(self._shared) + 2 * inner + self._noise * mixed[:, 0] + mixed[:, 1] + self._alone
        size = self.size + 1
        error: Floats = past / (self._n_columns * size**2) + (self._own_sum + self._own) / size**2
        return error

    def add(self, chosen: int) -> None:
        row = self._rest[chosen]
        self._sum += self._mean[chosen]
        self._sum[row.indices] += row.data
        self._seen_sum[row.indices] += 1
        self._noise_sum[row.indices] += self._noise[chosen]
        self._own_sum += self._own[chosen]
        self.size += 1

    def squared(self, *, as_printed: bool | None = None) -> float:
        """RMSE² of the group as it is, infinite for nobody; by the formula it grew by unless the other is asked for."""
        if not self.size:
            return float("inf")
        past = self._past(self._shared if as_printed is None else (0.0 if as_printed else 1.0) * self._covariance)
        return float(past / (self._n_columns * self.size**2) + self._own_sum / self.size**2)

    def _past(self, shared: Floats) -> float:
        """|D|², and the noise of the crowd's average that it holds wherever the group was seen."""
        common = (shared * self._seen_sum) @ self._noise_sum
        return float(self._sum @ self._sum + common - self._seen_sum**2 @ self._average_noise)

    def _over_seen(self, *columns: Floats) -> Floats:
        """For every candidate the sums of these over the columns that they were seen on."""
        stacked = np.stack(columns, axis=1)
        sums: Floats = stacked.sum(axis=0)[None, :] if self._complete else self._seen @ stacked
        return sums

    def rmse(self, *, as_printed: bool | None = None) -> float:
        """Its root; a squared error estimated below zero counts as zero."""
        return float(np.sqrt(max(self.squared(as_printed=as_printed), 0.0)))


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
