"""The black-box audit: sample anything callable on neighbouring answers and bound its ε from below.

Reports may be codes, words, numbers or whole vectors; each is turned into a few thousand cells whose borders come from
the first half of the samples only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.audit.bound import ALPHA, Bound, choose, measure
from crowdveil.errors import InputError

Source: TypeAlias = Callable[[int, int], NDArray[Any]]
"""`source(input, n)` gives n independent reports of that input: an array of n, or n × m when a report is a vector."""

_MOST_CODES = 1 << 16
_MOST_COORDINATES = 8
_TAIL = 10.0 ** -np.arange(2.25, 7, 0.25)
_QUANTILES = np.unique(np.concatenate([np.linspace(0, 1, 65), _TAIL, 1 - _TAIL]))


def black_box(
    source: Source,
    n_inputs: int,
    *,
    samples: int,
    pairs: Sequence[tuple[int, int]] | None = None,
    alpha: float = ALPHA,
    delta: float = 0.0,
) -> Bound:
    """The certified lower bound. Without `pairs` all inputs are neighbours of each other."""
    if samples < 100:
        raise InputError(f"an audit needs at least 100 samples per input; got {samples}")
    tested = list(permutations(range(n_inputs), 2)) if pairs is None else [*pairs, *((b, a) for a, b in pairs)]
    seen, sized = ([np.asarray(source(each, samples // 4)) for each in range(n_inputs)] for _ in range(2))
    views = _views(seen)
    choices = [choose(_counts(view, seen), _counts(view, sized), tested, alpha=alpha, delta=delta) for view in views]
    best = max(range(len(views)), key=lambda index: choices[index].score)
    fresh = [np.asarray(source(each, samples - 2 * (samples // 4))) for each in range(n_inputs)]
    return measure(choices[best], _counts(views[best], fresh), alpha=alpha, delta=delta)


class _View:
    """A way to look at reports: a function to cells, made from the first half."""

    def __init__(self, cell: Callable[[NDArray[Any]], NDArray[np.int64]], n_cells: int) -> None:
        self.cell, self.n_cells = cell, n_cells


def _counts(view: _View, halves: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.stack([np.bincount(view.cell(half), minlength=view.n_cells) for half in halves])


def _views(halves: Sequence[NDArray[Any]]) -> list[_View]:
    """Every projection of a vector, or the report itself."""
    if halves[0].ndim == 1:
        return [_flat_view(halves, lambda reports: reports)]
    if halves[0].dtype.kind in "iub" and (radix := _radix(halves)) is not None:
        return [_flat_view(halves, lambda reports: reports.astype(np.int64) @ radix)]
    return [_flat_view(halves, projection) for projection in _projections(halves)]


def _radix(halves: Sequence[NDArray[Any]]) -> NDArray[np.int64] | None:
    """Weights that number all vectors of codes, if they are few enough to be counted."""
    sizes = 1 + np.max([half.max(axis=0) for half in halves], axis=0).astype(np.int64)
    if min(int(half.min()) for half in halves) < 0 or np.prod(sizes.astype(float)) > _MOST_CODES:
        return None
    return np.append(1, np.cumprod(sizes)[:-1]).astype(np.int64)


def _projections(halves: Sequence[NDArray[Any]]) -> list[Callable[[NDArray[Any]], NDArray[Any]]]:
    """Single coordinates, the length, and the direction that separates two inputs best if noise were normal."""
    width = halves[0].shape[1]
    means = [half.mean(axis=0) for half in halves]
    spread = np.atleast_2d(np.cov(halves[0], rowvar=False)) + 1e-12 * np.eye(width)
    separating = [np.linalg.lstsq(spread, other - means[0], rcond=1e-9)[0] for other in means[1:4]]
    directions = [*np.eye(width)[:_MOST_COORDINATES], *separating]
    return [_length, *(_along(direction) for direction in directions)]


def _length(reports: NDArray[Any]) -> NDArray[Any]:
    length: NDArray[Any] = np.abs(reports).sum(axis=1)
    return length


def _along(direction: NDArray[np.float64]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda reports: reports @ direction


def _flat_view(halves: Sequence[NDArray[Any]], project: Callable[[NDArray[Any]], NDArray[Any]]) -> _View:
    flat = [project(half) for half in halves]
    if all(each.dtype.kind in "iub" for each in flat):
        low, high = min(int(each.min()) for each in flat), max(int(each.max()) for each in flat)
        if high - low < _MOST_CODES:
            n_codes = high - low + 1
            # Codes that the first half never saw share the last cell.
            return _View(lambda reports: _clipped(project(reports), low, n_codes), n_codes + 1)
    if all(each.dtype.kind in "iubf" for each in flat):
        edges = np.unique(np.quantile(np.concatenate(flat), _QUANTILES))
        return _View(lambda reports: np.searchsorted(edges, project(reports), side="right"), len(edges) + 1)
    return _word_view(flat, project)


def _clipped(codes: NDArray[Any], low: int, n_codes: int) -> NDArray[np.int64]:
    cells = codes.astype(np.int64) - low
    return np.where((cells < 0) | (cells >= n_codes), n_codes, cells)


def _word_view(flat: Sequence[NDArray[Any]], project: Callable[[NDArray[Any]], NDArray[Any]]) -> _View:
    words = {word: place for place, word in enumerate(dict.fromkeys(str(each) for half in flat for each in half))}

    def cell(reports: NDArray[Any]) -> NDArray[np.int64]:
        return np.array([words.get(str(each), len(words)) for each in project(reports)], dtype=np.int64)

    return _View(cell, len(words) + 1)
