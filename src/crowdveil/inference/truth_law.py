"""The law of the truths: one part normal, which may reach beyond the scale, the other even on it.

Of either, some lie on the levels and the rest anywhere. The normal law's mean and variance and all parts are set by the
reports (type-II maximum likelihood). Without the even part, truths that end with the scale would seem to be levels,
because levels do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.truth_grid import TruthGrid

Array = NDArray[Any]
Floats = NDArray[np.float64]
_ON_LEVELS, _LEVELS_WEIGHT = 0.2, 25.0
"""The part of the truths that lies on levels before anything is known, and how many pseudo-questions say so."""
_NORMAL, _NORMAL_WEIGHT = 0.8, 5.0
"""The same for the part of the normal law: few, or an even law would widen every narrow one."""
_STEPS = 50


@dataclass(frozen=True, slots=True)
class TruthLaw:
    """`mean` and `variance` of the normal part, how much of the whole is `normal`, and how much lies on `levels`."""

    mean: float
    variance: float
    normal: float = _NORMAL
    levels: float = _ON_LEVELS

    @classmethod
    def first(cls, grid: TruthGrid) -> TruthLaw:
        """Before anything is known: as wide as the scale."""
        return cls(grid.middle, grid.range**2 / 12)

    @classmethod
    def read(cls, numbers: Array) -> TruthLaw:
        return cls(*(float(number) for number in numbers))

    def written(self) -> Floats:
        return np.array([self.mean, self.variance, self.normal, self.levels])

    def weights(self, grid: TruthGrid) -> Floats:
        """The weight of every point."""
        return self._normal(grid) + self._even(grid)

    def _normal(self, grid: TruthGrid) -> Floats:
        logs = -((grid.points - self.mean) ** 2) / (2 * self.variance)
        return self.normal * self._in_parts(grid, logs)

    def _even(self, grid: TruthGrid) -> Floats:
        logs = np.where((grid.points > grid.edges[0]) & (grid.points < grid.edges[-1]), 0.0, -np.inf)
        return (1 - self.normal) * self._in_parts(grid, logs)

    def _in_parts(self, grid: TruthGrid, logs: Floats) -> Floats:
        """A law given by its logs, of which the levels have their part."""
        if not len(grid.atoms):
            return _from_logs(logs)
        anywhere, on_levels = (_from_logs(each) for each in np.split(logs, [len(grid.grid)]))
        return np.concatenate([(1 - self.levels) * anywhere, self.levels * on_levels])

    def fitted(self, grid: TruthGrid, counts: Array, weight: float) -> TruthLaw:
        """The next law when each point was the truth so often; `weight` pseudo-questions follow the first normal."""
        part = np.divide(self._normal(grid), np.maximum(self.weights(grid), 1e-300))
        normal = counts * part
        total, levels = counts.sum(), counts[len(grid.grid) :].sum()
        return TruthLaw(
            *self._moved(grid, normal + weight * TruthLaw.first(grid)._normal(grid) / _NORMAL),
            float((normal.sum() + _NORMAL_WEIGHT * _NORMAL) / (total + _NORMAL_WEIGHT)),
            float((levels + _LEVELS_WEIGHT * _ON_LEVELS) / (total + _LEVELS_WEIGHT)),
        )

    def _moved(self, grid: TruthGrid, counts: Array) -> tuple[float, float]:
        """Mean and variance of the normal law that has those of the counts *on the points*.

        These end somewhere, so a normal law is narrower on them than its variance says. Giving it the counts' own
        variance would narrow it more in every step, most where reports tell least. It is never wider than the first
        one: who made the scale meant it to hold the truths.
        """
        wanted, widest = _moments(grid, counts), TruthLaw.first(grid).variance
        mean, variance = self.mean, self.variance
        for _ in range(_STEPS):
            found = _moments(grid, TruthLaw(mean, variance, 1.0, self.levels)._normal(grid))
            if abs(found[0] - wanted[0]) + abs(found[1] - wanted[1]) ** 0.5 < 1e-7 * grid.range:
                break
            mean = float(np.clip(mean + wanted[0] - found[0], grid.numbers.min(), grid.numbers.max()))
            variance = float(np.clip(variance * wanted[1] / max(found[1], 1e-12), grid.step**2, widest))
        return mean, variance


def _from_logs(logs: Floats) -> Floats:
    weights: Floats = np.exp(logs - logs.max())
    weights /= weights.sum()
    return weights


def _moments(grid: TruthGrid, counts: Array) -> tuple[float, float]:
    law = counts / counts.sum()
    mean = float(law @ grid.points)
    return mean, float(law @ (grid.points - mean) ** 2)
