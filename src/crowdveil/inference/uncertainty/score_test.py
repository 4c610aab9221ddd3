"""Whether the options are named as often as each other, as far as noise lets anybody tell (Rao's score test, 1948)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from crowdveil.inference.observations.likelihood import Emission
from crowdveil.inference.uncertainty.summaries import LEVEL

Array = NDArray[Any]


def score_excess(symbols: Array, emission: Emission, *, alike: float = 1.0) -> float:
    """How uneven the options' shares are at least, counted in what noise alone would make of even ones; 0 if it may be.

    The score statistic of even shares from how often each symbol came in is the squared length of a vector, as noise
    alone makes it no longer than the quantile of its law; the rest is real. `alike` is by how much the statistic grows
    because reports are not independent. Symbols of several channels may be counted together: each is compared with what
    even shares make of its own channel.
    """
    options = emission.table[: emission.n_options]
    even = options.mean(axis=0)
    scores = np.divide(options, even, out=np.ones_like(options), where=even > 0) - 1
    # Their mean is 0 but for rounding, which would stand out in a table that is nearly even.
    scores -= scores.mean(axis=0)
    score, information = scores @ symbols, (scores * symbols) @ scores.T
    statistic = float(score @ np.linalg.pinv(information, hermitian=True) @ score) / alike
    freedom = max(len(options) - 1, 1)
    sure = max(math.sqrt(max(statistic, 0.0)) - math.sqrt(chdtri(freedom, 1 - LEVEL)), 0.0)
    return sure**2 / freedom
