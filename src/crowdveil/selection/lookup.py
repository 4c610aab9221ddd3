"""Candidates looked up in the history: who has past reports, and what is assumed of who has none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from crowdveil.selection.candidates import Candidates
from crowdveil.selection.history import Floats, History


class Known:
    """The rows of the history in the order of the candidates; a stranger's row is empty."""

    def __init__(self, history: History, candidates: Candidates) -> None:
        # Who is listed without a report is a stranger too: nothing tells their noise but their level.
        reported = np.diff(history.rest.indptr) > 0
        row_of = {str(worker): row for row, worker in enumerate(history.workers) if reported[row]}
        self.rows = np.array([row_of.get(str(worker), -1) for worker in candidates.workers], dtype=np.int64)
        self.new: NDArray[np.bool_] = self.rows < 0
        self.stranger = self._noise_of_strangers(history, candidates)
        self.rest = vstack([history.rest, csr_matrix((1, history.n_columns))]).tocsr()[self.rows]
        self._seen = csr_matrix((np.ones_like(self.rest.data), self.rest.indices, self.rest.indptr), self.rest.shape)
        self._complete = self.rest.nnz == len(self.rows) * history.n_columns

    def of(self, numbers: Floats, otherwise: Floats | float) -> Floats:
        """A number of each candidate from the history; of strangers another one."""
        values: Floats = np.where(self.new, otherwise, numbers[self.rows])
        return values

    def over_seen(self, *columns: Floats) -> Floats:
        """For every candidate the sums of these over the columns that they were seen on."""
        stacked = np.stack(columns, axis=1)
        sums: Floats = stacked.sum(axis=0)[None, :] if self._complete else self._seen @ stacked
        return sums

    def _noise_of_strangers(self, history: History, candidates: Candidates) -> Floats:
        """Of workers without history: that of known ones at their level, or of all; none of the unprotected."""
        reported = ~self.new
        overall = float(history.noise[self.rows[reported]].mean()) if reported.any() else float(history.noise.mean())
        noise = np.full(len(self.rows), overall)
        levels = np.array([str(level) for level in candidates.level])
        for level in np.unique(levels[self.new]):
            peers = self.rows[reported & (levels == level)]
            if len(peers):
                noise[levels == level] = history.noise[peers].mean()
        return np.where(candidates.unprotected, 0.0, noise)
