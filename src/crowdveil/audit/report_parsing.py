"""Reports of anybody's code as arrays of one kind, decided once and for all inputs alike.

A report must be read the same whatever came beside it. Read batch by batch, the same number would be a number among
numbers and a text among texts, and honest code would be accused of the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Reader: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]

_LARGEST_CODE = 2**63


def reader(batches: Sequence[NDArray[Any]]) -> Reader:
    """Numbers if all reports are, rows of numbers if all are such vectors of one length, else words."""
    if all(_is_numeric(batch) for batch in batches) and len({batch.shape[1:] for batch in batches}) == 1:
        return _numbers_like(batches[0].shape[1:])
    items = [item for batch in batches for item in batch.tolist()]
    if all(_is_number(item) for item in items):
        return _numbers_like(())
    widths = {len(item) if isinstance(item, list | tuple | np.ndarray) else -1 for item in items}
    if len(widths) == 1 and min(widths) > 0 and all(_is_row(item) for item in items):
        return _numbers_like((widths.pop(),))
    return _words


def _numbers_like(shape: tuple[int, ...]) -> Reader:
    """Reports of this shape; one that turns up later and does not fit is no number (NaN)."""

    def read(batch: NDArray[Any]) -> NDArray[Any]:
        if _is_numeric(batch) and batch.shape[1:] == shape:
            return batch
        if shape:
            gap = [np.nan] * shape[0]
            return np.array([item if _is_row(item) and len(item) == shape[0] else gap for item in batch.tolist()])
        return np.array([item if _is_number(item) else np.nan for item in batch.tolist()])

    return read


def _words(batch: NDArray[Any]) -> NDArray[Any]:
    words = np.empty(len(batch), dtype=object)
    words[:] = [_to_text(item) for item in batch.tolist()]
    return words


def _to_text(item: Any) -> str:
    """As Python writes it; NumPy's numbers and arrays as what they stand for."""
    if isinstance(item, np.ndarray | np.generic):
        item = item.tolist()
    return repr(list(item)) if isinstance(item, tuple) else repr(item)


def _is_numeric(batch: NDArray[Any]) -> bool:
    return batch.dtype.kind in "iubf"


def _is_number(item: Any) -> bool:
    if isinstance(item, int | np.integer):
        return abs(int(item)) < _LARGEST_CODE
    return isinstance(item, float | np.floating | np.bool_)


def _is_row(item: Any) -> bool:
    if isinstance(item, np.ndarray):
        return item.ndim == 1 and _is_numeric(item)
    return isinstance(item, list | tuple) and all(_is_number(entry) for entry in item)
