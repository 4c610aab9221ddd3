"""Counting codes in pieces: NumPy's own count first copies the whole column to 64 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIECE = 1 << 20


def pieces(n: int, size: int = PIECE, start: int = 0) -> list[slice]:
    """Slices of at most `size` that cover the rows from `start` to `n`."""
    return [slice(first, min(first + size, n)) for first in range(start, n, size)]


def count_codes(codes: NDArray[Any], size: int) -> NDArray[np.int64]:
    """How often each code occurs."""
    total = np.zeros(size, dtype=np.int64)
    for piece in pieces(len(codes)):
        total += np.bincount(codes[piece], minlength=size)
    return total


def sum_by_code(codes: NDArray[Any], weights: Callable[[slice], NDArray[Any]], size: int) -> NDArray[np.float64]:
    """The sum of the weights at each code; the weights are made piece by piece."""
    total = np.zeros(size)
    for piece in pieces(len(codes)):
        total += np.bincount(codes[piece], weights(piece), minlength=size)
    return total
