"""The hot loops, compiled; each has its plain twin in `plain.py`, which is its oracle and takes over without Numba.

Rows are laid out in tiles, some questions met by some *cells* (a cell is one worker giving one symbol). Summing by
question, a strip of tiles with the same questions keeps their sums in the processor's cache while the cells pass by;
summing by cell it is the other way round.
Kernels release the interpreter lock, so that threads sweep different blocks of questions at once. What they fill is
made outside: compiling how an array is made would take longer than compiling the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from crowdveil.inference.kernels.em_reference import LEFT
from crowdveil.inference.kernels.layout import AHEAD as _AHEAD
from crowdveil.inference.kernels.simd import add_row, fetch_row
from crowdveil.inference.kernels.softmax import column_sums as column_sums
from crowdveil.inference.kernels.softmax import log_shares as log_shares
from crowdveil.inference.kernels.softmax import softmax as softmax
from crowdveil.inference.kernels.softmax import unrolled

Array = NDArray[Any]
AHEAD = np.uint64(_AHEAD)
_MIXED, _APART = 4096, 64
_MANY = 8
"""With more tiles to pass by than this, the next rows have left the cache since they were read: they are asked for."""


@njit(nogil=True, cache=True)
def sort_rows(question: Array, low: int, high: int, starts: Array, rows: Array) -> None:
    """Row numbers of the questions from `low` to `high` by question, stably; `starts` holds one slot per question."""
    for row in range(len(question)):
        code = question[row] - low
        if 0 <= code < high - low:
            rows[starts[code]] = row
            starts[code] += 1


def take(column: Array, rows: Array) -> Array:
    """column[rows]; NumPy would first copy the row numbers to 64 bits."""
    taken = np.empty(len(rows), dtype=column.dtype)
    _take(column, rows, taken)
    return taken


@njit(nogil=True, cache=True)
def count_tiles(cell: Array, question: Array, across: int, cell_bits: int, question_bits: int, sizes: Array) -> None:
    """How many rows each tile has."""
    for index in range(len(cell)):
        sizes[(question[index] >> question_bits) * across + (cell[index] >> cell_bits)] += 1


def lay_out(cell: Array, question: Array, layout: Any) -> None:
    """Distribute rows (sorted by question) over the tiles."""
    slots = layout.starts[:-1].copy()
    _lay_out(
        cell, question, layout.n_across, layout.cell_bits, layout.question_bits, slots, layout.cell, layout.question
    )


def sweep_logs(layout: Any, table: Array, total: Array) -> None:
    """total[question] = the sum of table[cell] over the question's rows."""
    for first in range(0, layout.n_down, layout.strip):
        _strip_logs(layout, first, table, total)


def sweep_posterior(layout: Any, table: Array, log_classes: Array, gold: Array, total: Array) -> tuple[float, Array]:
    """The posteriors from the logarithms of the cells, strip by strip; what `softmax` returns, summed."""
    objective, classes = 0.0, np.zeros(total.shape[1])
    for first in range(0, layout.n_down, layout.strip):
        part = slice(first << layout.question_bits, first + layout.strip << layout.question_bits)
        _strip_logs(layout, first, table, total)
        more, counted = softmax(total[part], log_classes, gold[part], layout.answered[part])
        objective, classes = objective + more, classes + counted
    return objective, classes


def sweep_counts(layout: Any, posterior: Array, counts: Array) -> None:
    """counts[cell] = the sum of posterior[question] over the cell's rows."""
    _counts(unrolled(counts))(*_tiles(layout), layout.n_down, layout.strip, posterior, counts)


def sweep_apart(layout: Any, posterior: Array, own: Array, seen: Array, total: Array) -> None:
    """total[question] += log (1 − p·own[cell]) / (1 − p·seen[cell]) over all rows, p the question's posterior."""
    _apart()(*_tiles(layout), posterior, own, seen, total)


def _strip_logs(layout: Any, first: int, table: Array, total: Array) -> None:
    last = min(first + layout.strip, layout.n_down)
    _logs(unrolled(table))(*_tiles(layout), first, last, table, total)


def _tiles(layout: Any) -> tuple[Any, ...]:
    return layout.cell, layout.question, layout.starts, layout.n_across, layout.cell_bits, layout.question_bits


@njit(nogil=True, cache=True)
def _take(column: Array, rows: Array, taken: Array) -> None:
    for index in range(len(rows)):
        taken[index] = column[rows[index]]


@njit(nogil=True, cache=True)
def _lay_out(
    cell: Array,
    question: Array,
    across: int,
    cell_bits: int,
    question_bits: int,
    slots: Array,
    row: Array,
    place: Array,
) -> None:
    # A few thousand rows at a time, not one after the other but far ones first: rows of one question that follow each
    # other would each wait for the sum that the one before has just written.
    for first in range(0, len(cell), _MIXED):
        last = min(first + _MIXED, len(cell))
        for offset in range(_APART):
            for index in range(first + offset, last, _APART):
                tile = (question[index] >> question_bits) * across + (cell[index] >> cell_bits)
                slot = slots[tile]
                slots[tile] = slot + 1
                row[slot] = cell[index] & ((1 << cell_bits) - 1)
                place[slot] = question[index] & ((1 << question_bits) - 1)


@njit(nogil=True, cache=True)
def _rows(starts: Array, tile: int) -> tuple[Any, Any]:
    """Where a tile begins and ends; unsigned, or each row would first be asked whether it counts from the end."""
    return np.uint64(starts[tile]), np.uint64(starts[tile + 1])


@cache
def _logs(n_options: int) -> Callable[..., None]:
    @njit(nogil=True, cache=True, boundscheck=False)
    def logs(
        row: Array,
        place: Array,
        starts: Array,
        across: int,
        cell_bits: int,
        question_bits: int,
        first: int,
        last: int,
        table: Array,
        total: Array,
    ) -> None:
        far = across > _MANY
        total[first << question_bits : last << question_bits] = 0
        for strip in range(across):
            cells = strip << cell_bits
            for part in range(first, last):
                questions = part << question_bits
                low, high = _rows(starts, part * across + strip)
                for index in range(low, high):
                    if n_options > 0:
                        if far:
                            fetch_row(table, cells + row[index + AHEAD], n_options)
                        add_row(total, questions + place[index], table, cells + row[index], n_options)
                    else:
                        for option in range(table.shape[1]):
                            total[questions + place[index], option] += table[cells + row[index], option]

    return logs  # type: ignore[no-any-return]


@cache
def _counts(n_options: int) -> Callable[..., None]:
    @njit(nogil=True, cache=True, boundscheck=False)
    def counts(
        row: Array,
        place: Array,
        starts: Array,
        across: int,
        cell_bits: int,
        question_bits: int,
        down: int,
        each: int,
        posterior: Array,
        counts: Array,
    ) -> None:
        far = down > _MANY
        for first in range(0, across, each):
            last = min(first + each, across)
            counts[first << cell_bits : last << cell_bits] = 0
            for part in range(down):
                questions = part << question_bits
                for strip in range(first, last):
                    cells = strip << cell_bits
                    low, high = _rows(starts, part * across + strip)
                    for index in range(low, high):
                        if n_options > 0:
                            if far:
                                fetch_row(posterior, questions + place[index + AHEAD], n_options)
                            add_row(counts, cells + row[index], posterior, questions + place[index], n_options)
                        else:
                            for option in range(counts.shape[1]):
                                counts[cells + row[index], option] += posterior[questions + place[index], option]

    return counts  # type: ignore[no-any-return]


@cache
def _apart() -> Callable[..., None]:
    @njit(nogil=True, cache=True, boundscheck=False)
    def apart(
        row: Array,
        place: Array,
        starts: Array,
        across: int,
        cell_bits: int,
        question_bits: int,
        posterior: Array,
        own: Array,
        seen: Array,
        total: Array,
    ) -> None:
        for tile in range(len(starts) - 1):
            questions, cells = (tile // across) << question_bits, (tile % across) << cell_bits
            low, high = _rows(starts, tile)
            for index in range(low, high):
                code, cell = questions + place[index], cells + row[index]
                for option in range(total.shape[1]):
                    p = posterior[code, option]
                    left = max(1.0 - p * own[cell, option], LEFT)
                    total[code, option] += np.log(left / max(1.0 - p * seen[cell, option], LEFT))

    return apart  # type: ignore[no-any-return]
