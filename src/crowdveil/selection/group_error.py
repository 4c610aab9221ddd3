"""The error to expect of a group on a new question, kept up to date while it grows.

A group S of s workers errs, squared and on average, by

    [ (Σ leaning)² + Σ (noise + scatter) + |Σ camp|² − Σ |camp|² ] / s²  −  2 Σ own / (s N)  +  Σ_all own / N².

`scatter` is the variance of a worker's next deviation around their leaning, and `camp` the part of it that goes
together with other workers' (its product with another's is their covariance); `own`, the rest, is their own. The truth
is the average opinion of the N workers of the history. It holds the group's, so that a group of everybody errs by its
noise alone. Gains can rise as the group grows, so skipping candidates by stale gains (lazy evaluation) would be wrong.
"""

from __future__ import annotations

import numpy as np

from crowdveil.selection.candidates import Candidates
from crowdveil.selection.history import Floats, History
from crowdveil.selection.lookup import Known


class GroupError:
    """Expected squared errors of a growing group, for candidates in the order of their table."""

    def __init__(self, history: History, candidates: Candidates) -> None:
        known = Known(history, candidates)
        opinions = history.opinions
        self._leaning = known.of(opinions.leaning, 0.0)
        self._camp = np.where(known.new[:, None], 0.0, opinions.camp[known.rows])
        alone = known.of(history.noise + opinions.scatter, known.stranger + opinions.stranger)
        self._alone = alone - np.square(self._camp).sum(axis=1)
        # A stranger's opinion is no part of the history's average.
        self._own = known.of(history.own_scatter, 0.0) / history.n_workers
        self._everybody = float(history.own_scatter.sum()) / history.n_workers**2
        self._leaning_sum = self._alone_sum = self._own_sum = 0.0
        self._camp_sum = np.zeros(self._camp.shape[1])
        self.size = 0

    def with_each(self) -> Floats:
        """RMSE² of the group with each candidate added to it."""
        camp = np.square(self._camp_sum + self._camp).sum(axis=1)
        leaning = (self._leaning_sum + self._leaning) ** 2
        size = self.size + 1
        error: Floats = (leaning + camp + self._alone_sum + self._alone) / size**2
        error += self._everybody - 2 * (self._own_sum + self._own) / size
        return error

    def add(self, chosen: int) -> None:
        self._leaning_sum += float(self._leaning[chosen])
        self._camp_sum += self._camp[chosen]
        self._alone_sum += float(self._alone[chosen])
        self._own_sum += float(self._own[chosen])
        self.size += 1

    def squared_error(self) -> float:
        """RMSE² of the group as it is, infinite for nobody."""
        if not self.size:
            return float("inf")
        camp = float(self._camp_sum @ self._camp_sum)
        error = (self._leaning_sum**2 + camp + self._alone_sum) / self.size**2
        return error + self._everybody - 2 * self._own_sum / self.size
