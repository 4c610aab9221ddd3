"""How much of a study each worker answered, when channels hide it: by inverting them, drawn towards the crowd."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.observations.likelihood import Emission
from crowdveil.inference.protocols import Statistics

Array = NDArray[Any]
LEAST, MOST = 0.002, 0.999


def answered_scores(emission: Emission) -> tuple[Array, Array, Array]:
    """For each symbol: an unbiased score of "answered", its variance where ∅ is an input, and whether ∅ is one."""
    ends = [*emission.offsets[1:].tolist(), emission.n_symbols]
    score, hidden = np.ones(emission.n_symbols), np.zeros(emission.n_symbols, dtype=bool)
    variance = np.zeros(emission.n_symbols)
    for start, end in zip(emission.offsets.tolist(), ends, strict=True):
        table = emission.table[:, start:end]
        if not emission.with_empty or not table[-1].any():
            continue
        # Only two inputs matter, some answer or ∅: the least-squares score is unbiased for both averages.
        pair = np.vstack([table[:-1].mean(axis=0), table[-1]])
        mean = np.maximum(pair.mean(axis=0), 1e-300)
        solved = (pair / mean).T @ np.linalg.lstsq((pair / mean) @ pair.T, np.array([1.0, 0.0]), rcond=None)[0]
        score[start:end], hidden[start:end] = solved, True
        variance[start:end] = float((pair @ solved**2 - (pair @ solved) ** 2).max())
    return score, variance, hidden


def count_answered(symbol: Array, worker: Array, emission: Emission, n_workers: int) -> Statistics:
    """What the shares need, by worker: reports that hide participation, their scores and variances."""
    score, variance, hidden = answered_scores(emission)
    rows = hidden[symbol]
    here, whose = symbol[rows], worker[rows]
    return {
        "hidden": np.bincount(whose, minlength=n_workers).astype(np.float64),
        "answered": np.bincount(whose, score[here], minlength=n_workers).astype(np.float64),
        "noise": np.bincount(whose, variance[here], minlength=n_workers).astype(np.float64),
    }


def shares(statistics: Statistics) -> NDArray[np.float64]:
    """Each worker's share of answered questions: the inverted count, shrunk to the crowd's by its own noise."""
    hidden, answered, noise = statistics["hidden"], statistics["answered"], statistics["noise"]
    known = hidden > 0
    rates = np.ones(len(hidden))
    if not known.any():
        return rates
    crowd = float(np.clip(answered[known].sum() / hidden[known].sum(), LEAST, MOST))
    raw = answered[known] / hidden[known]
    variance = (noise[known] + hidden[known] * crowd * (1 - crowd)) / hidden[known] ** 2
    between = max(0.0, float(np.mean((raw - crowd) ** 2 - variance)))
    rates[known] = np.clip(crowd + (raw - crowd) * between / (between + variance), LEAST, MOST)
    return rates
