"""The error of a mean rating: expected over the noise of the reports, and averaged over surveys (Kandappu 2015)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crowdveil.papers.core.reproduction import Row, column, select

Floats = NDArray[np.float64]


def expected_square(opinions: Floats, noise: Floats, weight: Floats, theta: float) -> float:
    """E(RMSE²) over the noise, (4.5) and (4.12): the squared sampling error plus the variance of the noise."""
    share = weight / weight.sum()
    return float((share @ opinions - theta) ** 2 + share**2 @ noise)


def rmse(rows: Sequence[Row], policy: str, budget: float) -> float:
    return quadratic(select(rows, policy=policy, budget=budget), "squared", root=True)


def quadratic(rows: Sequence[Row], key: str, *, root: bool = False) -> float:
    """The quadratic mean of errors; with `root` the column already holds squares."""
    values = np.array(column(rows, key))
    return float(np.sqrt(np.mean(values if root else values**2))) if len(values) else float("nan")


def constant(rows: Sequence[Row]) -> float:
    """The error of saying the same best value of every film."""
    thetas = np.array(column(select(rows, policy="theta"), "theta"))
    return float(np.sqrt(np.mean((thetas - thetas.mean()) ** 2)))
