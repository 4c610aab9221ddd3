"""The expected error of a group's estimate on a new question, kept up to date while the group changes.

The estimate is Σ wᵢ reportᵢ / W with W = Σ wᵢ over the group S. Its expected squared error is

    [ (Σ w·leaning)² + Σ w²·(noise + scatter − |camp|²) + |Σ w·camp|² ] / W²  −  2 Σ w·own / (W N)  +  Σ_all own / N².

`scatter` is the variance of a worker's next deviation around their leaning, and `camp` the part of it that goes
together with other workers' (its product with another's is their covariance); `own`, the rest, is their own. The truth
is the average opinion of the N workers of the history. It includes the group's, so that a group of everybody with equal
weights errs by its noise alone. Gains can rise as the group grows, so skipping candidates by stale gains (lazy
evaluation) would be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crowdveil.selection.candidates import Candidates
from crowdveil.selection.estimator import Estimator
from crowdveil.selection.history import Floats, History
from crowdveil.selection.lookup import Known

# The floor of a report's variance that `population-mean` weighs by.
_MIN_VARIANCE = 1e-12


class GroupError:
    """Expected squared errors of a group under an estimator, for candidates in the order of their table.

    With `exploration` above 0 they are optimistic about workers of whom little is known, and no longer expected ones.
    """

    def __init__(
        self,
        history: History,
        candidates: Candidates,
        estimator: Estimator = Estimator.PLAIN_MEAN,
        *,
        exploration: float = 0.0,
    ) -> None:
        known = Known(history, candidates)
        opinions = history.opinions
        noise = known.of(history.noise, known.stranger)
        # One τ² for everybody, as the estimator has it: the variance of an opinion around the crowd's average.
        weight = np.ones(len(candidates))
        if estimator is Estimator.INVERSE_VARIANCE:
            weight = 1 / np.maximum(opinions.stranger + noise, _MIN_VARIANCE)
        camp = np.where(known.new[:, None], 0.0, opinions.camp[known.rows])
        alone = noise + known.of(opinions.scatter, opinions.stranger) - np.square(camp).sum(axis=1)
        if exploration > 0:
            # An upper confidence bound on information; no report has more than its noise leaves.
            alone = np.maximum(alone - exploration * known.of(opinions.unknown, opinions.unknown_stranger), noise)
        self._weight = weight
        self._leaning = weight * known.of(opinions.leaning, 0.0)
        self._camp = weight[:, None] * camp
        self._alone = weight**2 * alone
        # A stranger's opinion is no part of the history's average, but would be once they are known.
        own_stranger = min(exploration, 1.0) * float(history.own_scatter.sum()) / max(history.n_workers, 1)
        self._own = weight * known.of(history.own_scatter, own_stranger) / history.n_workers
        self._everybody = float(history.own_scatter.sum()) / history.n_workers**2
        self.set_members(())

    def set_members(self, rows: Sequence[int]) -> None:
        """Let the group be these candidates. Sums are taken anew: a difference of sums would lose small weights."""
        members = np.array(rows, dtype=np.int64)
        self._weight_sum, self._leaning_sum, self._alone_sum, self._own_sum = (
            float(column[members].sum()) for column in (self._weight, self._leaning, self._alone, self._own)
        )
        self._camp_sum = self._camp[members].sum(axis=0)
        self.size = len(members)

    def with_each(self) -> Floats:
        """RMSE² of the group with each candidate added to it."""
        camp = np.square(self._camp_sum + self._camp).sum(axis=1)
        leaning = (self._leaning_sum + self._leaning) ** 2
        weight = self._weight_sum + self._weight
        error: Floats = (leaning + camp + self._alone_sum + self._alone) / weight**2
        error += self._everybody - 2 * (self._own_sum + self._own) / weight
        return error

    def without_each(self, rows: Sequence[int]) -> Floats:
        """RMSE² of the group with each of these members removed from it."""
        if self.size < 2:
            return np.full(len(rows), np.inf)
        members = np.array(rows, dtype=np.int64)
        camp = np.square(self._camp_sum - self._camp[members]).sum(axis=1)
        leaning = (self._leaning_sum - self._leaning[members]) ** 2
        # Beside a weight beyond all others the rest may vanish in rounding.
        weight = np.maximum(self._weight_sum - self._weight[members], self._weight_sum * np.finfo(float).eps)
        error: Floats = (leaning + camp + self._alone_sum - self._alone[members]) / weight**2
        error += self._everybody - 2 * (self._own_sum - self._own[members]) / weight
        return error

    def add(self, chosen: int) -> None:
        self._weight_sum += float(self._weight[chosen])
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
        error = (self._leaning_sum**2 + camp + self._alone_sum) / self._weight_sum**2
        return error + self._everybody - 2 * self._own_sum / self._weight_sum
