"""Where the truth of a scale question may lie: a fine grid that reaches beyond the scale, and the levels themselves.

Real scales ask for things that either vary smoothly (how warm is it) or are levels by nature (which grade).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import ndtr

from crowdveil.domain import Domain

Array = NDArray[Any]
Floats = NDArray[np.float64]
BEYOND = 0.4
"""How far beyond either end a truth may lie, as a part of the range: answers are clipped, truths are not."""
N_SPREADS = 10
MOST_ATOMS = 21
"""On a scale with more levels than this, levels are as good as continuous."""
SLIP = 0.003
"""The chance that an answer has nothing to do with the truth, whoever gives it."""
_FINE, _NEAR, _CHUNK = 384, 14.0, 1024


@dataclass(frozen=True, slots=True, eq=False)
class TruthGrid:
    """`grid` (even steps) and `atoms` (levels) are the points a truth may take; `spreads` the σ a worker may have."""

    numbers: Floats
    grid: Floats
    atoms: Floats
    spreads: Floats

    @property
    def points(self) -> Floats:
        return np.concatenate([self.grid, self.atoms])

    @property
    def step(self) -> float:
        return float(self.grid[1] - self.grid[0])

    @property
    def range(self) -> float:
        return float(np.ptp(self.numbers)) or 1.0

    @property
    def middle(self) -> float:
        return float(self.numbers.min() + self.numbers.max()) / 2

    @property
    def edges(self) -> Floats:
        """What is nearest to a level lies between two of these; an end level's part is as wide on either side."""
        levels = np.sort(self.numbers)
        middles = (levels[1:] + levels[:-1]) / 2
        if not len(middles):
            return np.array([levels[0] - self.range / 2, levels[0] + self.range / 2])
        return np.concatenate([[2 * levels[0] - middles[0]], middles, [2 * levels[-1] - middles[-1]]])

    def laws(self) -> Floats:
        """P(level | truth at point, spread): spread × point × level; the last spread answers at random."""
        order = np.argsort(self.numbers, kind="stable")
        levels = self.numbers[order]
        below = ndtr((self.edges[1:-1] - self.points[:, None]) / self.spreads[:, None, None])
        ends = np.zeros((*below.shape[:2], 1))
        laws = np.diff(np.concatenate([ends, below, ends + 1], axis=2), axis=2)
        spelled = np.empty_like(laws)
        spelled[:, :, order] = (1 - SLIP) * laws + SLIP / len(levels)
        return np.concatenate([spelled, np.full((1, *laws.shape[1:]), 1 / len(levels))])


def truth_grid(domain: Domain) -> TruthGrid:
    """The points for this domain."""
    numbers = domain.numbers
    width = float(np.ptp(numbers)) or 1.0
    gap = width / max(len(numbers) - 1, 1)
    n_points = int(np.clip(round((1 + 2 * BEYOND) * width / (0.25 * gap)), 64, 128))
    low, high = float(numbers.min()) - BEYOND * width, float(numbers.max()) + BEYOND * width
    atoms = numbers if len(numbers) <= MOST_ATOMS else np.empty(0)
    spreads = np.geomspace(max(0.15 * gap, 0.02 * width), width, N_SPREADS)
    return TruthGrid(numbers, np.linspace(low, high, n_points), atoms, spreads)


def quantiles(grid: TruthGrid, logs: Array, prior: Floats, wanted: tuple[float, ...]) -> list[Floats]:
    """Quantiles of posteriors given by the logs of their likelihoods, question × point, and the prior of every point.

    Log-likelihoods are smooth on the scale of the workers' spreads, so a cubic spline through the grid stands for them
    between its points, however sharp the posterior is. The prior may jump where the scale ends; a spline would swing.
    """
    parts = [_quantiles(grid, logs[first : first + _CHUNK], prior, wanted) for first in range(0, len(logs), _CHUNK)]
    return [np.concatenate([part[k] for part in parts]) if parts else np.empty(0) for k in range(len(wanted))]


def _quantiles(grid: TruthGrid, logs: Array, prior: Floats, wanted: tuple[float, ...]) -> list[Floats]:
    n_grid, step = len(grid.grid), grid.step
    held = logs + np.log(np.maximum(prior, 1e-300))
    near = held[:, :n_grid] >= held[:, :n_grid].max(axis=1, keepdims=True) - _NEAR
    first = np.maximum(near.argmax(axis=1) - 1, 0)
    last = np.minimum(n_grid - near[:, ::-1].argmax(axis=1), n_grid - 1)
    low, high = grid.grid[first], grid.grid[last]
    width = (high - low) / _FINE
    places = low[:, None] + (np.arange(_FINE) + 0.5) * width[:, None]
    smooth = np.maximum(logs[:, :n_grid], logs[:, :n_grid].max(axis=1, keepdims=True) - 1e4)
    density = np.maximum(np.interp(places, grid.grid, prior[:n_grid]), 1e-300)
    fine = _spline(grid.grid, smooth, places) + np.log(density) + np.log(width / step)[:, None]
    atoms = np.broadcast_to(grid.atoms, (len(logs), len(grid.atoms)))
    everywhere = np.concatenate([places, atoms], axis=1)
    mass = np.concatenate([fine, held[:, n_grid:]], axis=1)
    mass = np.exp(mass - mass.max(axis=1, keepdims=True))
    mass /= mass.sum(axis=1, keepdims=True)
    reach = np.concatenate([np.broadcast_to(width[:, None], places.shape), np.zeros_like(atoms)], axis=1)
    order = np.argsort(everywhere, axis=1, kind="stable")
    everywhere, mass, reach = (np.take_along_axis(each, order, axis=1) for each in (everywhere, mass, reach))
    below = np.cumsum(mass, axis=1)
    found = []
    for level in wanted:
        place = (below < level).sum(axis=1).clip(0, below.shape[1] - 1)[:, None]
        x, m, r, upto = (np.take_along_axis(each, place, axis=1)[:, 0] for each in (everywhere, mass, reach, below))
        found.append(x + r * np.clip(0.5 - (upto - level) / np.maximum(m, 1e-300), -0.5, 0.5))
    return found


def _spline(grid: Floats, values: Array, places: Array) -> Floats:
    """A cubic spline through each row of values, at that row's own places."""
    coefficients = CubicSpline(grid, values, axis=1).c
    interval = np.clip(np.searchsorted(grid, places) - 1, 0, len(grid) - 2)
    offset, rows = places - grid[interval], np.arange(len(values))[:, None]
    result = np.zeros_like(places)
    for power in range(4):
        result = result * offset + coefficients[power, interval, rows]
    return result
