"""Where the truth of a scale question may lie: a fine grid that reaches beyond the scale, and the levels themselves.

Real scales ask for things that either vary smoothly (how warm is it) or are levels by nature (which grade).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crowdveil.channel import Channel
from crowdveil.domain import Domain

Array = NDArray[Any]
Floats = NDArray[np.float64]
BEYOND = 0.4
"""How far beyond either end a truth may lie, as a part of the range: answers are clipped, truths are not."""
N_SPREADS, MORE_SPREADS = 10, 12
"""How many spreads a worker may have; more where the least is a small part of the scale, and they lie further apart."""
LEAST_SPREAD = 0.15
"""The least spread of a worker, in gaps between levels: answers of less spread tell nothing more than a level."""
EXACT = 0.25
"""Below this spread, in gaps, workers are exact: nearly all that their answers tell is which level is the nearest."""
FEW_LEVELS, MOST_ATOMS = 21, 34
"""Up to so many levels points are dense beyond the scale too; with more than the second, levels are as good as none."""
SLIP = 0.003
"""The chance that an answer has nothing to do with the truth, whoever gives it."""
_AROUND = (0.004, 0.02, 0.045, 0.085, 0.15, 0.25, 0.37)
"""How far from where answers change to the next level truths are looked at in the end, in gaps."""
_FINE, _NEAR, _CHUNK = 384, 14.0, 1024


@dataclass(frozen=True, slots=True, eq=False)
class TruthGrid:
    """`points` a truth may take and the `widths` they stand for; `levels` among them; `spreads` a worker may have."""

    numbers: Floats
    points: Floats
    widths: Floats
    levels: NDArray[np.int64]
    spreads: Floats

    @property
    def gap(self) -> float:
        """From a level to the next, on average."""
        return self.range / max(len(self.numbers) - 1, 1)

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Which spreads are exact; none where levels are as good as continuous."""
        return (self.spreads < EXACT * self.gap) & (len(self.levels) > 0)

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


def truth_grid(domain: Domain, channels: tuple[Channel, ...] = ()) -> TruthGrid:
    """The points for this domain: evenly spaced, levels among them unless these are many.

    Where no channel lets most answers through, nobody's exactness shows, and fewer levels are many.
    """
    numbers = domain.numbers
    width = float(np.ptp(numbers)) or 1.0
    gap = width / max(len(numbers) - 1, 1)
    few = len(numbers) <= FEW_LEVELS
    if not few and not (len(numbers) <= MOST_ATOMS and any(map(_lets_most_through, channels))):
        ends = float(numbers.min()) - BEYOND * width, float(numbers.max()) + BEYOND * width
        points = np.linspace(*ends, 128)
        spreads = np.geomspace(max(LEAST_SPREAD * gap, 0.02 * width), width, N_SPREADS)
        return TruthGrid(numbers, points, _widths(points), np.empty(0, np.int64), spreads)
    levels = np.unique(numbers)
    spreads = np.geomspace(LEAST_SPREAD * gap, width, N_SPREADS if few else MORE_SPREADS)
    parts = max(4 if few else 1, round((36 if few else 84) / max(len(levels) - 1, 1)))
    inside = np.interp(np.arange((len(levels) - 1) * parts + 1), parts * np.arange(len(levels)), levels)
    step = gap / parts * (1 if few else 3)
    outside = step * np.arange(1, int(BEYOND * width / step + 1e-9) + 1)
    points = np.concatenate([levels[0] - outside[::-1], inside, levels[-1] + outside])
    return TruthGrid(numbers, points, _widths(points), len(outside) + parts * np.arange(len(levels)), spreads)


def _lets_most_through(channel: Channel) -> bool:
    return bool(channel.table.max(axis=1).min() >= 0.5)


def _widths(points: Floats) -> Floats:
    """How much of the line is nearest to each point."""
    middles = (points[1:] + points[:-1]) / 2
    return np.diff(np.concatenate([points[:1], middles, points[-1:]]))


def finest(grid: TruthGrid) -> TruthGrid:
    """The same with points that are dense between levels.

    Workers who agree leave open all of the numbers that are nearest to their level, and show a truth just between two
    levels by splitting.
    """
    if not len(grid.levels):
        return grid
    levels = grid.points[grid.levels]
    around = np.concatenate([-np.array(_AROUND), _AROUND])
    middles, gaps = (levels[1:] + levels[:-1]) / 2, np.diff(levels)
    between = (middles[:, None] + gaps[:, None] * around).ravel()
    outside = grid.points[(grid.points < levels[0]) | (grid.points > levels[-1])]
    points = np.sort(np.concatenate([outside, levels, between]))
    return replace(grid, points=points, widths=_widths(points), levels=np.searchsorted(points, levels))


def quantiles(
    grid: TruthGrid, logs: Sequence[Array], priors: Sequence[Floats], wanted: tuple[float, ...]
) -> list[Floats]:
    """Quantiles of posteriors given by log-likelihoods, question × point, under one explanation or several.

    Each has its prior, weighted by how likely the explanation is: of the points as parts of the line, and as levels.
    Between points log-likelihoods are interpolated, so that posteriors may be far sharper than the grid is fine. The
    prior may jump where the scale ends; an interpolation would swing.
    """
    rows = [slice(first, first + _CHUNK) for first in range(0, len(logs[0]), _CHUNK)]
    parts = [_quantiles(grid, [each[part] for each in logs], priors, wanted) for part in rows]
    return [np.concatenate([part[k] for part in parts]) if parts else np.empty(0) for k in range(len(wanted))]


def _quantiles(
    grid: TruthGrid, logs: Sequence[Array], priors: Sequence[Floats], wanted: tuple[float, ...]
) -> list[Floats]:
    line, on_levels = ([np.log(np.maximum(prior[part], 1e-300)) for prior in priors] for part in (0, 1))
    held = _together(each + weight for each, weight in zip(logs, line, strict=True))
    near = held >= held.max(axis=1, keepdims=True) - _NEAR
    first = np.maximum(near.argmax(axis=1) - 1, 0)
    last = np.minimum(len(grid.points) - near[:, ::-1].argmax(axis=1), len(grid.points) - 1)
    low, high = grid.points[first], grid.points[last]
    width = (high - low) / _FINE
    places = low[:, None] + (np.arange(_FINE) + 0.5) * width[:, None]
    fine = _together(_at(grid, each, prior, places) for each, prior in zip(logs, priors, strict=True))
    fine += np.log(width)[:, None]
    atoms = np.broadcast_to(grid.points[grid.levels], (len(held), len(grid.levels)))
    everywhere = np.concatenate([places, atoms], axis=1)
    there = _together(each[:, grid.levels] + weight[grid.levels] for each, weight in zip(logs, on_levels, strict=True))
    mass = np.concatenate([fine, there], axis=1)
    mass = np.exp(mass - mass.max(axis=1, keepdims=True))
    mass /= mass.sum(axis=1, keepdims=True)
    reach = np.concatenate([np.broadcast_to(width[:, None], places.shape), np.zeros_like(atoms)], axis=1)
    return _read_off(everywhere, reach, mass, wanted)


def _read_off(places: Array, reach: Array, mass: Array, wanted: tuple[float, ...]) -> list[Floats]:
    """Quantiles of masses that are spread evenly over their reach around their places, row by row."""
    order = np.argsort(places, axis=1, kind="stable")
    places, reach, mass = (np.take_along_axis(each, order, axis=1) for each in (places, reach, mass))
    below = np.cumsum(mass, axis=1)
    quantiles = []
    for level in wanted:
        index = (below < level).sum(axis=1).clip(0, below.shape[1] - 1)[:, None]
        x, r, m, upto = (np.take_along_axis(each, index, axis=1)[:, 0] for each in (places, reach, mass, below))
        quantiles.append(x + r * np.clip(0.5 - (upto - level) / np.maximum(m, 1e-300), -0.5, 0.5))
    return quantiles


def _at(grid: TruthGrid, logs: Array, prior: Floats, places: Array) -> Floats:
    """The logarithm of likelihood times prior density."""
    density = np.interp(places, grid.points, prior[0] / grid.widths)
    likely = interpolate(grid.points, np.maximum(logs, logs.max(axis=1, keepdims=True) - 1e4), places)
    log_density: Floats = likely + np.log(np.maximum(density, 1e-300))
    return log_density


def _together(logs: Iterable[Floats]) -> Floats:
    """Logarithms of numbers that are added."""
    log_sum: Floats = reduce(np.logaddexp, logs)
    return log_sum


def interpolate(points: Floats, values: Array, places: Array) -> Floats:
    """Parabolas between the points, for each row of values at that row's own places.

    Each has the smaller curvature of the two at its ends (Harten & Osher 1987). So a parabola is met, and next to a
    cliff nothing swings, as a spline would.
    """
    steps = np.diff(points)
    slopes = np.diff(values, axis=1) / steps
    bends = np.pad(np.diff(slopes, axis=1) / (points[2:] - points[:-2]), ((0, 0), (1, 1)), mode="edge")
    before, after = bends[:, :-1], bends[:, 1:]
    bend = np.where(before * after > 0, np.sign(before) * np.minimum(np.abs(before), np.abs(after)), 0.0)
    left = np.clip(np.searchsorted(points, places) - 1, 0, len(points) - 2)
    x, rows = places - points[left], np.arange(len(values))[:, None]
    interpolated_values: Floats = values[rows, left] + x * (slopes[rows, left] + bend[rows, left] * (x - steps[left]))
    return interpolated_values
