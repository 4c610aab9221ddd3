"""Privacy-loss distributions: the tightest composition, for reports on a schedule that was fixed beforehand.

Losses stand on a grid and every rounding is upwards (Koskela et al. 2020; Doroshenko et al. 2022). As a *filter*, that
is when later questions depend on earlier reports, this is unsound; the ledger therefore never uses it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crowdveil.accounting.dominating_pairs import Atoms

_UNIT_ROUNDOFF = 2.0**-53
_DIRECT_WORK = 1 << 22
_GAUSSIAN_REACH = 10.0
_NEGLIGIBLE = 1e-16


@dataclass(frozen=True, slots=True, eq=False)
class Pld:
    """Mass of P at the losses (lowest + i)·interval, and at infinity."""

    interval: float
    lowest: int
    masses: NDArray[np.float64]
    infinite: float

    @classmethod
    def from_atoms(cls, atoms: Atoms, interval: float) -> Pld:
        """Each atom is split between its two neighbours on the grid so that the masses of P *and* of Q are kept.

        In H(γ) this draws a straight line between the two grid points, which a convex function never exceeds.
        With L = ε₁ + x: p₂/p = (1 − e^−x) / (1 − e^−interval) stands at ε₂ = ε₁ + interval.
        """
        below = np.floor(atoms.losses / interval).astype(np.int64)
        share = np.expm1(-(atoms.losses - below * interval)) / math.expm1(-interval)
        share = np.clip(share, 0.0, 1.0)
        lowest = int(below.min())
        masses = np.zeros(int(below.max()) - lowest + 2)
        np.add.at(masses, below - lowest, atoms.masses * (1 - share))
        np.add.at(masses, below - lowest + 1, atoms.masses * share)
        return cls(interval, lowest, masses, atoms.infinite)

    @classmethod
    def gaussian(cls, mu: float, interval: float) -> Pld:
        """The loss of N(μ, 1) against N(0, 1) is N(μ²/2, μ²); each bucket counts at its upper end."""
        centre, reach = mu**2 / 2, _GAUSSIAN_REACH * mu
        lowest, highest = math.floor((centre - reach) / interval), math.ceil((centre + reach) / interval)
        ends = (np.arange(lowest, highest + 1) * interval - centre) / mu
        # The complement is exact far out, where 1 − Φ would have no digits left.
        masses = np.diff(ndtr(ends), prepend=0.0)
        upper = ends > 0
        masses[upper] = -np.diff(ndtr(-ends), prepend=1.0)[upper]
        return cls(interval, lowest, masses, float(ndtr(-ends[-1])))

    @classmethod
    def nothing(cls, interval: float) -> Pld:
        return cls(interval, 0, np.ones(1), 0.0)

    def compose(self, other: Pld) -> Pld:
        """Both releases together."""
        n = len(self.masses) + len(other.masses) - 1
        infinite = 1 - (1 - self.infinite) * (1 - other.infinite)
        if len(self.masses) * len(other.masses) <= _DIRECT_WORK:
            masses, error = np.convolve(self.masses, other.masses), 0.0
        else:
            size = _fast_size(n)
            product = np.fft.rfft(self.masses, size) * np.fft.rfft(other.masses, size)
            masses, error = _from_spectrum(product, size, n, times=1)
        return _trim(self.interval, self.lowest + other.lowest, masses, infinite + error, error)

    def times(self, count: int) -> Pld:
        """The same release `count` times."""
        if count == 1:
            return self
        n = (len(self.masses) - 1) * count + 1
        infinite = -math.expm1(count * math.log1p(-self.infinite)) if self.infinite < 1 else 1.0
        size = _fast_size(n)
        masses, error = _from_spectrum(np.fft.rfft(self.masses, size) ** count, size, n, times=count)
        return _trim(self.interval, self.lowest * count, masses, infinite + error, error)

    def delta(self, epsilon: float) -> float:
        """δ(ε) = P[∞] + Σ over losses above ε of (1 − e^(ε − loss))·P[loss]."""
        losses = (self.lowest + np.arange(len(self.masses))) * self.interval
        above = losses > epsilon
        return self.infinite + float(-np.expm1(epsilon - losses[above]) @ self.masses[above])

    def epsilon(self, delta: float) -> float:
        """The smallest ε ≥ 0 at δ."""
        if delta <= self.infinite:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        first, last = max(0, 1 - self.lowest), len(self.masses) - 1
        while first < last:
            middle = (first + last) // 2
            enough = self.delta((self.lowest + middle) * self.interval) <= delta
            first, last = (first, middle) if enough else (middle + 1, last)
        # Just below loss j, δ(ε) = P[∞] + S − e^(ε − loss j)·R with S = Σ P and R = Σ P·e^−(loss − loss j) from j on.
        top, rest = (self.lowest + first) * self.interval, self.masses[first:]
        s, r = float(rest.sum()), float(rest @ np.exp(-self.interval * np.arange(len(rest))))
        share = (self.infinite + s - delta) / r if r > 0 else 1.0
        return min(top, max(0.0, top + math.log(share))) if share > 0 else top


def compose_all(parts: Iterable[Pld], interval: float) -> Pld:
    """All parts together; the order never matters."""
    return reduce(Pld.compose, parts, Pld.nothing(interval))


def _trim(interval: float, lowest: int, masses: NDArray[np.float64], infinite: float, error: float) -> Pld:
    """Without tails that weigh less than rounding moved anyway: the lower one moved up, the upper one to infinity."""
    negligible = max(_NEGLIGIBLE, error)
    from_below = masses.cumsum()
    first = int(np.searchsorted(from_below, negligible, side="right"))
    last = len(masses) - int(np.searchsorted(masses[::-1].cumsum(), negligible, side="right"))
    if first >= last:
        return Pld(interval, lowest, masses, min(1.0, infinite))
    core = masses[first:last].copy()
    core[0] += masses[:first].sum()
    return Pld(interval, lowest + first, core, min(1.0, infinite + float(masses[last:].sum())))


def _from_spectrum(
    spectrum: NDArray[np.complex128], size: int, n: int, *, times: int
) -> tuple[NDArray[np.float64], float]:
    """The masses, and a bound on what rounding may have moved.

    The l² error of a fast transform is below u·log₂(size) relative to the vector; a power multiplies it by its
    exponent; and the sum of absolute errors is at most √size times their l² norm.
    """
    masses: NDArray[np.float64] = np.clip(np.fft.irfft(spectrum, size)[:n], 0.0, None)
    norm = float(np.sqrt(masses @ masses))
    error = 4 * _UNIT_ROUNDOFF * (times + 1) * math.log2(size) * math.sqrt(size) * norm
    return masses, error


def _fast_size(n: int) -> int:
    return 1 << (n - 1).bit_length() if n > 1 else 1
