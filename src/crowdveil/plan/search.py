"""The other way round: how many workers, or which ε, a wanted error needs."""

from __future__ import annotations

import math
from collections.abc import Callable

MOST_WORKERS = 10_000_000
LARGEST_EPSILON = 8.0
SMALLEST_EPSILON = 0.01


def least(
    error_at: Callable[[float], float], target: float, low: float, high: float, *, steps: int = 12
) -> float | None:
    """The smallest x in [low, high] with error_at(x) ≤ target, on a logarithmic scale; None if there is none.

    `error_at` must fall as x rises (up to the planner's own noise).
    """
    if error_at(low) <= target:
        return low
    bottom, top = math.log(low), math.log(low)
    # Climb in growing strides first: errors far from the target are cheap to tell apart.
    stride = math.log(2)
    while top < math.log(high):
        top = min(top + stride, math.log(high))
        if error_at(math.exp(top)) <= target:
            break
        bottom, stride = top, stride * 1.7
    else:
        return None
    for _ in range(steps):
        if top - bottom < 0.01:
            break
        middle = (bottom + top) / 2
        if error_at(math.exp(middle)) <= target:
            top = middle
        else:
            bottom = middle
    return math.exp(top)
