"""The expected error of a group by (4.12) as printed: what past deviations add up to, taken at their word.

It drops the covariance of a group's noise with that of the crowd's average, so it is too small and can fall below
zero, and it is smallest for groups whose past errors cancelled by chance. `paper_mode` chooses by it, and every
selection names it beside the error that is to be expected.
"""

from __future__ import annotations

import numpy as np

from crowdveil.selection.candidates import Candidates
from crowdveil.selection.history import Floats, History
from crowdveil.selection.lookup import Known


class PrintedError:
    """Squared errors of a growing group; |D + d_i|² = |D|² + 2 D·d_i + |d_i|², and only D·d_i changes in a step."""

    def __init__(self, history: History, candidates: Candidates) -> None:
        known = Known(history, candidates)
        self._known, self._rest = known, known.rest
        self._mean = known.of(history.mean, 0.0)
        self._own = known.of(history.own, known.stranger + history.unseen_variance)
        self._average_noise, self._n_columns = history.average_noise, history.n_columns
        self._alone = known.of(history.norm, 0.0) - known.over_seen(self._average_noise)[:, 0]
        self._sum, self._seen_sum = np.zeros(history.n_columns), np.zeros(history.n_columns)
        self._own_sum, self.size = 0.0, 0

    def with_each(self) -> Floats:
        """RMSE² of the group with each candidate added to it."""
        inner = self._rest @ self._sum + self._mean * self._sum.sum()
        mixed = self._known.over_seen(self._seen_sum * self._average_noise)[:, 0]
        past = self._past() + 2 * (inner - mixed) + self._alone
        size = self.size + 1
        error: Floats = past / (self._n_columns * size**2) + (self._own_sum + self._own) / size**2
        return error

    def add(self, chosen: int) -> None:
        row = self._rest[chosen]
        self._sum += self._mean[chosen]
        self._sum[row.indices] += row.data
        self._seen_sum[row.indices] += 1
        self._own_sum += self._own[chosen]
        self.size += 1

    def squared_error(self) -> float:
        """RMSE² of the group as it is, infinite for nobody."""
        if not self.size:
            return float("inf")
        return float(self._past() / (self._n_columns * self.size**2) + self._own_sum / self.size**2)

    def _past(self) -> float:
        return float(self._sum @ self._sum - self._seen_sum**2 @ self._average_noise)
