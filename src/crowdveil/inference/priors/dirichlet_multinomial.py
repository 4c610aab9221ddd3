"""Dirichlet-multinomial laws: evidence, posterior mean logarithms, and their strength by Minka's fixed point.

T. P. Minka. Estimating a Dirichlet distribution. 2000.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

Array = NDArray[Any]
STRENGTHS = (0.1, 1e4)
"""Bounds of κ and τ: beyond them workers of the same kind are as unlike, or as alike, as any data could show."""


def log_logistic(strength: float, median: float) -> float:
    """The logarithm of the density of log strength, but for a constant."""
    return float(np.log(strength) - 2 * np.log(median + strength))


@dataclass(frozen=True, slots=True, eq=False)
class Dirichlets:
    """Dirichlet laws of reports, one for each worker and column (a truth, or any), and the counts seen under them.

    `counts` is worker × symbol × column. `base` has the laws' means, `strength` their sums by symbol; a worker's
    symbols of different channels are different laws. `starts` says where each channel's symbols begin.
    """

    counts: Array
    base: Array
    strength: Array
    starts: Array

    @property
    def prior(self) -> Array:
        return self.strength[:, None] * self.base

    def totals(self) -> Array:
        """The counts of each law: worker × channel × column."""
        totals: Array = np.add.reduceat(self.counts, self.starts, axis=1)
        return totals

    def spread(self, by_channel: Array) -> Array:
        """What is known by channel, for each symbol."""
        sizes = np.diff(np.append(self.starts, self.counts.shape[1]))
        return np.repeat(by_channel, sizes, axis=1)

    def log_evidence(self) -> Array:
        """By worker: the logarithm of how likely the counts are when the laws are integrated out."""
        prior, strength = self.prior, self.strength[self.starts][:, None]
        seen: Array = gammaln(self.counts + prior).sum(axis=(1, 2)) - gammaln(prior).sum(axis=(-2, -1))
        seen += (gammaln(strength) - gammaln(self.totals() + strength)).sum(axis=(1, 2))
        return seen

    def mean_log(self) -> Array:
        """E log φ under the posterior: worker × symbol × column."""
        strength = self.strength[self.starts][:, None]
        mean_log: Array = digamma(self.counts + self.prior) - self.spread(digamma(self.totals() + strength))
        return mean_log

    def fit_strength(self, strength: float, weight: Array, *, median: float) -> tuple[Array, float]:
        """One step of Minka's fixed point, workers having weights: draws from the base and the new strength.

        The draws, worker × symbol × column, are how many of the counts are first draws from the base (tables of the
        Chinese restaurant); the mean follows from them. A priori log strength is logistic around the median's.
        """
        prior, own = self.prior, self.strength[self.starts][:, None]
        draws = prior * (digamma(self.counts + prior) - digamma(prior)) * weight[:, None, None]
        slope = (digamma(self.totals() + own) - digamma(own)) * own
        total = float((slope.sum(axis=(1, 2)) * weight).sum()) / strength + 2 / (median + strength)
        return draws, float(np.clip((draws.sum() + 1) / total, *STRENGTHS))
