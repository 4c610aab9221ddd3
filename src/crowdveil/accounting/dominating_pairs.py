"""The privacy loss of one release as a few atoms: a pair of distributions that dominates all pairs of neighbours.

H(γ) = sup over neighbours of Σ max(0, P − γ·Q) is convex in γ. Reading it at some points and joining them by straight
lines is never below it, and such a line is itself a pair with atoms at those points (Doroshenko et al. 2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel.divergence import epsilon_of

_POINTS = 512
_MOST_RATIOS = 1 << 14
_CLOSEST = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Atoms:
    """Mass of P at each loss ln(P/Q), rising; what is missing to 1 stands at infinity."""

    losses: NDArray[np.float64]
    masses: NDArray[np.float64]

    @property
    def infinite(self) -> float:
        return max(0.0, 1.0 - float(self.masses.sum()))


def pure_atoms(epsilon: float) -> Atoms:
    """Binary randomised response: the worst pair of all that are ε-private."""
    if math.isinf(epsilon):
        return Atoms(np.zeros(1), np.zeros(1))
    keep = 1 / (1 + math.exp(-epsilon))
    return Atoms(np.array([-epsilon, epsilon]), np.array([1 - keep, keep]))


def channel_atoms(rows: NDArray[np.uint64]) -> Atoms:
    """Two rows have one atom for each output; more rows are dominated by their hockey-stick envelope."""
    epsilon = epsilon_of(rows)
    if not 0 < epsilon < math.inf:
        return pure_atoms(epsilon)
    table = rows[:, rows.max(axis=0) > 0].astype(np.float64)
    table /= table.sum(axis=1, keepdims=True)
    if len(table) == 2 and _mirrored(rows):
        return _pair_atoms(table[0], table[1])
    gammas = _points(table, epsilon)
    return _envelope_atoms(gammas, hockey_stick(table, gammas))


def _points(table: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Where the envelope is read: an even grid, and the places where it bends, if they are not too many."""
    grid = np.linspace(-epsilon, epsilon, _POINTS)
    bends = (
        np.unique(np.log(table[:, None, :] / table[None, :, :])) if table.size * len(table) <= _MOST_RATIOS else grid
    )
    losses = np.union1d(grid, bends[np.abs(bends) < epsilon])
    # Slopes between points that nearly coincide would be rounding noise.
    apart = np.append(np.diff(losses) > _CLOSEST, True)
    points: NDArray[np.float64] = np.exp(losses[apart])
    return points


def hockey_stick(table: NDArray[np.float64], gammas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest Σ max(0, P − γ·Q) over all ordered pairs of rows, for each γ."""
    rows = np.unique(table, axis=0)
    largest = np.maximum(0.0, 1 - gammas)
    for first in rows:
        for second in rows:
            largest = np.maximum(largest, _one_pair(first, second, gammas))
    return largest


def _one_pair(p: NDArray[np.float64], q: NDArray[np.float64], gammas: NDArray[np.float64]) -> NDArray[np.float64]:
    # Outputs with P/Q > γ count; sorted by ratio they are a prefix, so two running sums answer every γ.
    ratio = np.divide(p, q, out=np.full_like(p, np.inf), where=q > 0)
    order = np.argsort(-ratio)
    above = np.searchsorted(-ratio[order], -gammas, side="left")
    p_sum, q_sum = np.append(0.0, p[order].cumsum()), np.append(0.0, q[order].cumsum())
    pair: NDArray[np.float64] = p_sum[above] - gammas * q_sum[above]
    return pair


def _mirrored(rows: NDArray[np.uint64]) -> bool:
    """The two rows hold the same pairs of weights in both directions, so one direction is the worst case."""
    pairs = sorted(zip(*rows.tolist(), strict=True))
    return pairs == sorted((second, first) for first, second in pairs)


def _pair_atoms(p: NDArray[np.float64], q: NDArray[np.float64]) -> Atoms:
    losses = np.log(p / q)
    order = np.argsort(losses)
    return Atoms(losses[order], p[order])


def _envelope_atoms(gammas: NDArray[np.float64], height: NDArray[np.float64]) -> Atoms:
    # Between two points the line falls with slope −Q[loss above the left one]; before the first point it is 1 − γ and
    # after the last it is 0. An atom is the change of slope, and its P mass is γ times that.
    tails = -np.diff(height) / np.diff(gammas)
    tails = np.concatenate([[1.0], np.minimum.accumulate(np.clip(tails, 0.0, 1.0)), [0.0]])
    masses = gammas * -np.diff(tails)
    # Rounding may leave the sum off by some 1e-14; the largest loss takes the difference, so nothing is understated.
    masses[-1] = max(0.0, 1.0 - masses[:-1].sum())
    return Atoms(np.log(gammas), masses)
