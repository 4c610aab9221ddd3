"""From numbers to an estimate: votes as shares, the value that is chosen, and intervals of what is said of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

LEVEL = 0.95
ENDS = (1 - LEVEL) / 2, (1 + LEVEL) / 2
QUANTILE = float(ndtri(ENDS[1]))
_ROUNDING = 1e-6
_LEAST = 1e-300


def choose_map(
    shares: NDArray[np.float64], answered: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The likeliest option and its share; the first of the domain's order on a tie, -1 where nobody answered.

    Shares that differ by less than rounding count as tied, so that the order of the reports cannot decide. They may be
    votes that weigh very little, so that what rounding is depends on the largest of them.
    """
    value = np.argmax(_on_top(shares), axis=1)
    return np.where(answered, value, -1).astype(np.int32), np.where(answered, shares.max(axis=1), 0.0)


def find_ties(shares: NDArray[np.float64], answered: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where the order of the options alone decides which of them is chosen."""
    several: NDArray[np.bool_] = (_on_top(shares).sum(axis=1) > 1) & answered
    return several


def _on_top(shares: NDArray[np.float64]) -> NDArray[np.bool_]:
    best = shares.max(axis=1, keepdims=True)
    top: NDArray[np.bool_] = shares >= best - _ROUNDING * np.abs(shares).max(axis=1, keepdims=True)
    return top


def on_simplex(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Votes as shares: negative ones count nothing, no votes at all mean equal shares."""
    positive = np.maximum(votes, 0.0)
    total = positive.sum(axis=1, keepdims=True)
    even = np.full_like(positive, 1.0 / positive.shape[1])
    shares: NDArray[np.float64] = np.divide(positive, total, out=even, where=total > 0)
    return shares


def normalize_logs(logs: NDArray[Any]) -> NDArray[Any]:
    """Probabilities from their logs, row by row."""
    weights: NDArray[Any] = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def wilson(share: NDArray[np.float64], count: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's interval of a share seen in `count` answers; all of [0, 1] where there are none."""
    square = QUANTILE**2
    centre = (share * count + square / 2) / (count + square)
    reach = QUANTILE * np.sqrt(share * (1 - share) * count + square / 4) / (count + square)
    # At 0 and 1 the share itself is a bound, which rounding must not leave out.
    low, high = np.minimum(centre - reach, share), np.maximum(centre + reach, share)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def rivals(posterior: NDArray[Any], option: NDArray[Any]) -> NDArray[np.int64]:
    """For each question the likeliest of the other options."""
    others = posterior.copy()
    others[np.arange(len(option)), option] = -1
    rival: NDArray[np.int64] = others.argmax(axis=1)
    return rival


def odds_interval(
    posterior: NDArray[Any], option: NDArray[Any], spread: NDArray[np.float64], answered: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The bounds of the option's probability, whose log-odds have this standard deviation; 0 and 1 without answers."""
    rows = np.arange(len(option))
    # Of all the others together: next to 1 a probability in single precision cannot tell how far from it it is.
    others = posterior.astype(np.float64)
    share = others[rows, option].copy()
    others[rows, option] = 0.0
    odds = np.log(np.maximum(share, _LEAST)) - np.log(np.maximum(others.sum(axis=1), _LEAST))
    low, high = (1 / (1 + np.exp(-np.clip(odds + side * QUANTILE * spread, -700, 700))) for side in (-1, 1))
    return np.where(answered, np.minimum(low, share), 0.0), np.where(answered, np.maximum(high, share), 1.0)
