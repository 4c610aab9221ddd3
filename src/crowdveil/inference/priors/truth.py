"""The law of the truths: one part normal, which may reach beyond the scale, the other even on it.

Of either, some lie on the levels and the rest anywhere. The normal law's mean and variance and all parts are set by the
reports (type-II maximum likelihood). Without the even part, truths that end with the scale would seem to be levels,
because levels do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.priors.truth_grid import TruthGrid

Array = NDArray[Any]
Floats = NDArray[np.float64]
ON_LEVELS, _LEVELS_WEIGHT = 0.2, 25.0
"""The part of the truths that lies on levels before anything is known, and how many pseudo-questions say so."""
_NORMAL, _NORMAL_WEIGHT = 0.8, 5.0
"""The same for the part of the normal law: few, or an even law would widen every narrow one."""
_MOST_SEEN = 0.99
_STEPS = 50
_NARROWEST = 0.25
"""The least standard deviation of the normal part, in gaps between levels."""


@dataclass(frozen=True, slots=True)
class TruthLaw:
    """`mean` and `variance` of the normal part, how much of the whole is `normal`, and how much lies on `levels`."""

    mean: float
    variance: float
    normal: float = _NORMAL
    levels: float = ON_LEVELS

    @classmethod
    def first(cls, grid: TruthGrid) -> TruthLaw:
        """Before anything is known: as wide as the scale."""
        return cls(grid.middle, grid.range**2 / 12)

    @classmethod
    def read(cls, numbers: Array) -> TruthLaw:
        return cls(*(float(number) for number in numbers))

    def to_array(self) -> Floats:
        return np.array([self.mean, self.variance, self.normal, self.levels])

    def weights(self, grid: TruthGrid) -> Floats:
        """The weight of every point."""
        weights: Floats = self.parts(grid).sum(axis=0)
        return weights

    def parts(self, grid: TruthGrid) -> Floats:
        """The weights of the points as parts of the line, and as levels."""
        return self._normal(grid) + self._even(grid)

    def unsure(self, exact: float, n_questions: int) -> tuple[TruthLaw, float]:
        """The law without truths on levels that fits as well, and how far exact workers' spreads shrink with it.

        How many questions divide workers whose spread σ is far below a level is proportional to σ·(1 − levels), and
        how they divide does not depend on σ: no reports of theirs tell truths that are levels from a crowd that is even
        more exact. `exact` is the part of what is known that comes from such workers; what pseudo-questions say of the
        levels is taken out.
        """
        seen = self.levels + (self.levels - ON_LEVELS) * _LEVELS_WEIGHT / max(n_questions, 1)
        seen = min(max(seen, 0.0), _MOST_SEEN)
        levels = (1 - exact) * seen
        return replace(self, levels=levels), (1 - seen) / (1 - levels)

    def _normal(self, grid: TruthGrid) -> Floats:
        return self.normal * self._in_parts(grid, -((grid.points - self.mean) ** 2) / (2 * self.variance))

    def _even(self, grid: TruthGrid) -> Floats:
        logs = np.where((grid.points > grid.edges[0]) & (grid.points < grid.edges[-1]), 0.0, -np.inf)
        return (1 - self.normal) * self._in_parts(grid, logs)

    def _in_parts(self, grid: TruthGrid, logs: Floats) -> Floats:
        """A law given by its logs, of which the levels have their part: on the line, and on levels."""
        parts = np.zeros((2, len(grid.points)))
        parts[0] = np.exp(logs - logs.max()) * grid.widths
        parts[0] /= parts[0].sum()
        if len(grid.levels):
            # Levels may all be far from a narrow law, so they are compared with each other only.
            on_levels = np.exp(logs[grid.levels] - logs[grid.levels].max())
            parts[0] *= 1 - self.levels
            parts[1, grid.levels] = self.levels * on_levels / on_levels.sum()
        return parts

    def refit(self, grid: TruthGrid, counts: Array, weight: float) -> TruthLaw:
        """The next law when each point was the truth so often; `weight` pseudo-questions follow the first normal."""
        normal, even = self._normal(grid), self._even(grid)
        each = counts / np.maximum((normal + even).sum(axis=0), 1e-200)
        levels = float(each @ (normal + even)[1])
        normal, total = each * normal.sum(axis=0), counts.sum()
        return TruthLaw(
            *self._fit_moments(grid, normal + weight * TruthLaw.first(grid)._normal(grid).sum(axis=0) / _NORMAL),
            float((normal.sum() + _NORMAL_WEIGHT * _NORMAL) / (total + _NORMAL_WEIGHT)),
            float((levels + _LEVELS_WEIGHT * ON_LEVELS) / (total + _LEVELS_WEIGHT)),
        )

    def _fit_moments(self, grid: TruthGrid, counts: Array) -> tuple[float, float]:
        """Mean and variance of the normal law that has those of the counts *on the points*.

        These end somewhere, so a normal law is narrower on them than its variance says. Giving it the counts' own
        variance would narrow it more in every step, most where reports tell least. It is never wider than the first
        one: who made the scale meant it to hold the truths.
        """
        wanted, widest = _moments(grid, counts), TruthLaw.first(grid).variance
        mean, variance = self.mean, self.variance
        for _ in range(_STEPS):
            moments = _moments(grid, TruthLaw(mean, variance, 1.0, self.levels)._normal(grid).sum(axis=0))
            if abs(moments[0] - wanted[0]) + abs(moments[1] - wanted[1]) ** 0.5 < 1e-7 * grid.range:
                break
            mean = float(np.clip(mean + wanted[0] - moments[0], grid.numbers.min(), grid.numbers.max()))
            variance = float(
                np.clip(variance * wanted[1] / max(moments[1], 1e-12), (_NARROWEST * grid.gap) ** 2, widest)
            )
        return mean, variance


def _moments(grid: TruthGrid, counts: Array) -> tuple[float, float]:
    law = counts / counts.sum()
    mean = float(law @ grid.points)
    return mean, float(law @ (grid.points - mean) ** 2)
