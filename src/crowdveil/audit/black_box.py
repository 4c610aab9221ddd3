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

from crowdveil.audit.lower_bound import ALPHA, LowerBound, choose, measure
from crowdveil.audit.report_parsing import reader
from crowdveil.errors import InputError
from crowdveil.progress import count_progress, progress_listener

Source: TypeAlias = Callable[[int, int], NDArray[Any]]
"""`source(input, n)` gives n independent reports of that input: an array of n, or n × m when a report is a vector."""

_MOST_CODES = 1 << 16
_MOST_COORDINATES = 8
_MOST_GAPS = 12
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
) -> LowerBound:
    """A lower bound on ε, at confidence 1 − `alpha`, from samples of a mechanism's output.

    `source` draws reports of an input, `samples` of each. `pairs` lists the neighbouring inputs; without it all inputs
    are neighbours. `delta` is the δ of the claim.
    """
    if samples < 100:
        raise InputError(f"an audit needs at least 100 samples per input; got {samples}")
    if not 0 <= delta < 1:
        raise InputError(f"the δ of a claim must be from 0 to below 1; got {delta}", fix="leave it out for pure ε")
    tested = list(permutations(range(n_inputs), 2)) if pairs is None else [*pairs, *((b, a) for a, b in pairs)]
    batches = count_progress(
        [input_index for _ in range(3) for input_index in range(n_inputs)], "batches of samples drawn"
    )
    drawn = [_sample(source, next(batches), samples // 4) for _ in range(2 * n_inputs)]
    read = reader(drawn)
    seen, sized = ([read(batch) for batch in half] for half in (drawn[:n_inputs], drawn[n_inputs:]))
    views = _views(seen)
    choices = [choose(_counts(view, seen), _counts(view, sized), tested, alpha=alpha, delta=delta) for view in views]
    best = max(range(len(views)), key=lambda index: choices[index].score)
    fresh = [read(_sample(source, input_index, samples - 2 * (samples // 4))) for input_index in batches]
    return measure(choices[best], _counts(views[best], fresh), alpha=alpha, delta=delta)


def _sample(source: Source, index: int, n: int) -> NDArray[Any]:
    with progress_listener(None):
        return np.asarray(source(index, n))


class _View:
    """A way to look at reports: a function to cells, made from the first half."""

    def __init__(self, cell: Callable[[NDArray[Any]], NDArray[np.int64]], n_cells: int) -> None:
        self.cell, self.n_cells = cell, n_cells


def _counts(view: _View, halves: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.stack([np.bincount(view.cell(half), minlength=view.n_cells) for half in halves])


def _views(halves: Sequence[NDArray[Any]]) -> list[_View]:
    """Every projection of a vector, or the report itself; and the values that come again and again, each by itself."""
    if halves[0].ndim == 1:
        return _flat_views(halves, lambda reports: reports)
    if halves[0].dtype.kind in "iub" and (radix := _radix(halves)) is not None:
        return [_flat_view(halves, lambda reports: reports.astype(np.int64) @ radix)]
    finite = [_numbers(half) for half in halves]
    views = [
        view
        for projection in _projections(finite)
        for view in _flat_views(halves, lambda reports, projection=projection: projection(_numbers(reports)))  # type: ignore[misc]
    ]
    if not all(np.isfinite(half).all() for half in halves):
        views.append(_flat_view(halves, _gaps))
    return [*views, *_raw_views(halves)]


def _raw_views(halves: Sequence[NDArray[Any]]) -> list[_View]:
    """The first coordinates bit by bit, where projections would lose something: the sign of 0, or what is no number."""
    odd = [np.isnan(half) | (half == 0) & np.signbit(half) for half in halves if half.dtype.kind == "f"]
    columns = range(min(halves[0].shape[1], _MOST_COORDINATES)) if any(flags.any() for flags in odd) else range(0)
    views = [_repeated_view([half[:, column] for half in halves], _column(column)) for column in columns]
    return [view for view in views if view is not None]


def _column(index: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda reports: reports[:, index]


def _numbers(reports: NDArray[Any]) -> NDArray[Any]:
    """Without what is no number: which coordinates those are is looked at apart."""
    return np.where(np.isfinite(reports), reports, 0)


def _gaps(reports: NDArray[Any]) -> NDArray[np.int64]:
    """Which of the first coordinates are no numbers, as one code."""
    gaps = ~np.isfinite(reports[:, :_MOST_GAPS])
    codes: NDArray[np.int64] = gaps.astype(np.int64) @ (1 << np.arange(gaps.shape[1]))
    return codes


def _flat_views(halves: Sequence[NDArray[Any]], project: Callable[[NDArray[Any]], NDArray[Any]]) -> list[_View]:
    flat = [project(half) for half in halves]
    repeated = None if _codes(flat) else _repeated_view(flat, project)
    return [_flat_view(halves, project), *([repeated] if repeated else [])]


def _codes(flat: Sequence[NDArray[Any]]) -> tuple[int, int] | None:
    """The lowest code and how many there are, if reports are whole numbers and few enough to be counted one by one."""
    if not all(column.dtype.kind in "iub" for column in flat):
        return None
    low, high = min(int(column.min()) for column in flat), max(int(column.max()) for column in flat)
    return (low, high - low + 1) if high - low < _MOST_CODES else None


def _repeated_view(flat: Sequence[NDArray[Any]], project: Callable[[NDArray[Any]], NDArray[Any]]) -> _View | None:
    """Numbers that were seen more than once: a report that is now and then the answer itself hides among noise.

    They are told apart by their bits: −0 is not 0, and what is no number can still say something.
    """
    if not all(column.dtype.kind in "iubf" for column in flat):
        return None
    values, counts = np.unique(_bits(np.concatenate(flat)), return_counts=True)
    often = np.sort(np.argsort(-counts, kind="stable")[:_MOST_CODES])
    repeated = values[often][counts[often] > 1]
    if len(repeated) == 0:
        return None

    def cell(reports: NDArray[Any]) -> NDArray[np.int64]:
        numbers = project(reports).astype(np.float64)
        index = np.minimum(np.searchsorted(repeated, _bits(numbers)), len(repeated) - 1)
        return np.where(repeated[index] == _bits(numbers), index, len(repeated) + np.isnan(numbers))

    return _View(cell, len(repeated) + 2)


def _bits(numbers: NDArray[Any]) -> NDArray[np.int64]:
    return np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64)


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
    separating = [np.linalg.lstsq(spread, mean - means[0], rcond=1e-9)[0] for mean in means[1:4]]
    directions = [*np.eye(width)[:_MOST_COORDINATES], *separating]
    return [_length, *(_along(direction) for direction in directions)]


def _length(reports: NDArray[Any]) -> NDArray[Any]:
    length: NDArray[Any] = np.abs(reports).sum(axis=1)
    return length


def _along(direction: NDArray[np.float64]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda reports: reports @ direction


def _flat_view(halves: Sequence[NDArray[Any]], project: Callable[[NDArray[Any]], NDArray[Any]]) -> _View:
    flat = [project(half) for half in halves]
    if (codes := _codes(flat)) is not None:
        # Codes that the first half never saw share the last cell.
        return _View(lambda reports: _clip_codes(project(reports), *codes), codes[1] + 1)
    if all(column.dtype.kind in "iubf" for column in flat):
        together = np.concatenate(flat).astype(np.float64)
        finite = together[np.isfinite(together)]
        edges = np.unique(np.quantile(finite, _QUANTILES)) if len(finite) else np.zeros(1)
        return _View(lambda reports: _between(edges, project(reports).astype(np.float64)), len(edges) + 2)
    return _word_view(flat, project)


def _between(edges: NDArray[np.float64], numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Between which edges; what is no number has a cell of its own."""
    return np.where(np.isnan(numbers), len(edges) + 1, np.searchsorted(edges, numbers, side="right"))


def _clip_codes(codes: NDArray[Any], low: int, n_codes: int) -> NDArray[np.int64]:
    inside = (codes >= low) & (codes < low + n_codes)
    # Taken as they are: 64-bit codes may not fit a signed number, their distance from the lowest does.
    return np.where(inside, (np.where(inside, codes, low) - codes.dtype.type(low)).astype(np.int64), n_codes)


def _word_view(flat: Sequence[NDArray[Any]], project: Callable[[NDArray[Any]], NDArray[Any]]) -> _View:
    words = {word: index for index, word in enumerate(dict.fromkeys(str(item) for half in flat for item in half))}

    def cell(reports: NDArray[Any]) -> NDArray[np.int64]:
        return np.array([words.get(str(item), len(words)) for item in project(reports)], dtype=np.int64)

    return _View(cell, len(words) + 1)
