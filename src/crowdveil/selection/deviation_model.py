"""What past reports foretell of a worker's next deviation from the crowd: a leaning, its own scatter, what is shared.

Past deviations are few and noisy, and workers differ in noise. So everything is weighed by how well it is known:
the crowd's average of a question by each report's variance (an average that counts all alike would carry the noise of
the worst into everybody's deviation), a worker's leaning and scatter against the crowd's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from crowdveil.selection.shared_factors import shared_opinions

Floats = NDArray[np.float64]
_ROUNDS = 4
_DUST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Opinions:
    """`leaning` and `scatter` (a variance, what is not known of the leaning included) of the next deviation.

    `camp` are the coordinates of the part of the scatter that is shared with others (`camps.py`), `stranger` is the
    scatter of a worker without reports.
    """

    leaning: Floats
    scatter: Floats
    camp: Floats
    stranger: float
    unknown: Floats
    """The variance of the leaning that is not known, and one standard deviation of what is not known of the scatter.

    Both shrink with every report of the worker.
    """
    unknown_stranger: float


class Past:
    """One entry per report: who, about which column, which unbiased number, with which noise variance."""

    def __init__(
        self, worker: NDArray[Any], column: NDArray[Any], value: Floats, variance: Floats, shape: tuple[int, int]
    ) -> None:
        self.worker, self.column, self.value, self.variance, self.shape = worker, column, value, variance, shape
        self.seen = np.bincount(worker, minlength=shape[0])
        self.counts = np.maximum(self.seen, 1)
        self.freedom = np.maximum(self.seen - 1, 0)
        self.noise = np.where(self.seen > 0, self.by_worker(variance) / self.counts, float(variance.mean()))

    def by_worker(self, numbers: Floats) -> Floats:
        sums: Floats = np.bincount(self.worker, numbers, minlength=self.shape[0]).astype(np.float64)
        return sums

    def by_column(self, numbers: Floats) -> Floats:
        sums: Floats = np.bincount(self.column, numbers, minlength=self.shape[1]).astype(np.float64)
        return sums

    def opinions(self, width: int) -> Opinions:
        """`width` columns make a question."""
        typical, between = float(np.var(self.value)), 0.0
        for _ in range(_ROUNDS):
            deviation, leaning, own_variance = self._measure_deviations(typical + between)
            typical = max(_weighted_mean(own_variance, self.freedom / (self.noise + typical + _DUST) ** 2), 0.0)
            alone = (self.noise + typical) / self.counts
            between = max(_weighted_mean(leaning**2 - alone, (self.seen > 0) / (alone + between + _DUST) ** 2), 0.0)
        trust = between / (between + alone) if between > 0 else np.zeros(self.shape[0])
        own_variance, deviation_of_own, deviation_of_stranger = self._drawn_together(own_variance, typical)
        scatter = own_variance + (1 - trust) * between
        rest = csr_matrix((deviation - (trust * leaning)[self.worker], (self.worker, self.column)), shape=self.shape)
        camp = shared_opinions(rest, np.sqrt(self.noise + scatter), width)
        scatter = np.maximum(scatter, np.square(camp).sum(axis=1))
        unknown = (1 - trust) * between + deviation_of_own
        stranger = typical + between
        return Opinions(trust * leaning, scatter, camp, stranger, unknown, between + deviation_of_stranger)

    def _measure_deviations(self, spread: float) -> tuple[Floats, Floats, Floats]:
        """Deviations if opinions spread so much; by worker their mean, and their variance without noise, unbiased."""
        weight = 1 / (self.variance + spread + _DUST)
        whole = np.maximum(self.by_column(weight), _DUST)
        deviation = self.value - (self.by_column(weight * self.value) / whole)[self.column]
        leaning = self.by_worker(deviation) / self.counts
        squares = self.by_worker((deviation - leaning[self.worker]) ** 2) / np.maximum(self.freedom, 1)
        # A report is part of the average that it deviates from.
        part = self.by_worker(1 / whole[self.column]) / self.counts
        return deviation, leaning, squares - self.noise + part

    def _drawn_together(self, own_variance: Floats, typical: float) -> tuple[Floats, Floats, float]:
        """Each worker's scatter, as much their own as scatters differ by more than chance makes so few of them do.

        Also the standard deviation of what is not known of it, and that of a stranger's.
        """
        by_chance = 2 * (self.noise + typical) ** 2 / np.maximum(self.freedom, 1) + _DUST
        apart = max(_weighted_mean((own_variance - typical) ** 2 - by_chance, self.freedom / by_chance), 0.0)
        share = (self.freedom > 0) * apart / (apart + by_chance)
        together: Floats = np.maximum(typical + share * (own_variance - typical), 0.0)
        return together, np.sqrt((1 - share) * apart), apart**0.5


def _weighted_mean(numbers: Floats, weight: Floats) -> float:
    total = float(weight.sum())
    return float((weight * numbers).sum() / total) if total > 0 else 0.0
