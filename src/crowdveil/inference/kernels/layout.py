"""The layout of a block for the kernels: tiles of some questions and some cells, a cell being one worker's symbol."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.kernels.bincount import count_codes
from crowdveil.inference.protocols import Block

TILE_BYTES = 1 << 18
"""So much of each table a tile touches: it passes through the second-level cache."""
STRIP = 4
"""Tiles in a strip: what they sum stays in that cache."""
LEAST_ROWS = 512
"""A tile with fewer rows than this costs more to enter than it saves."""
AHEAD = 64
"""So many rows before a row's numbers are needed they are asked for; the columns are that much longer."""
_MOST_BITS = 16


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Rows as (cell within its tile, question within its tile), 4 bytes each.

    A tile holds 2^question_bits questions and 2^cell_bits cells. Tiles stand in the order of their questions, those
    of the same questions in the order of their cells; tile i has the rows from starts[i] to starts[i + 1].
    `cells` names the cells that occur (worker × n_symbols + symbol); None when all of them have a place.
    """

    cell: NDArray[np.uint16]
    question: NDArray[np.uint16]
    starts: NDArray[np.int64]
    question_bits: int
    cell_bits: int
    n_cells: int
    cells: NDArray[np.int64] | None
    answered: NDArray[np.bool_]
    strip: int = STRIP

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def n_across(self) -> int:
        """How many tiles it takes to hold all cells."""
        return parts(self.n_cells, self.cell_bits)

    @property
    def n_down(self) -> int:
        """How many tiles it takes to hold all questions."""
        return parts(len(self.answered), self.question_bits)

    def find_rows(self, asked: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The cell and the question of every row of the questions that are `asked` about."""
        pieces = [self._rows_below(below, asked) for below in range(self.n_down)]
        cell, question = (np.concatenate(column) for column in zip(*pieces, strict=True))
        return cell, question

    def _rows_below(self, below: int, asked: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same in one line of tiles, all of the same questions."""
        starts = self.starts[below * self.n_across : (below + 1) * self.n_across + 1]
        question = self.question[starts[0] : starts[-1]] + np.int64(below << self.question_bits)
        rows = np.flatnonzero(asked[question])
        tile = np.searchsorted(starts, starts[0] + rows, side="right") - 1
        return self.cell[starts[0] + rows] + (tile << self.cell_bits), question[rows]


def parts(n: int, bits: int) -> int:
    """How many parts of 2^bits hold `n`; at least one."""
    return max(1, (n + (1 << bits) - 1) >> bits)


@cache
def kernels() -> ModuleType:
    """The compiled loops over a layout; Numba and they are loaded when first used."""
    return import_module("crowdveil.inference.kernels.em")


@cache
def row_kernels() -> ModuleType:
    """The same for the loops over rows that need no layout."""
    return import_module("crowdveil.inference.kernels.weighted")


def build_layout(block: Block, symbol: NDArray[Any], n_symbols: int, n_workers: int, n_options: int) -> Layout:
    """Lay a block out; where most cells would stay empty, only those that occur get a place."""
    n_cells, cells = n_workers * n_symbols, None
    cell = block.worker.astype(np.int32 if n_cells < 2**31 else np.int64) * n_symbols + symbol
    if n_cells > 4 * len(block) + 4096:
        cells, cell = np.unique(cell, return_inverse=True)
        n_cells = len(cells)
    bits = _bits(n_cells, block.n_questions, len(block), n_options)
    across = parts(n_cells, bits)
    sizes = np.zeros(parts(block.n_questions, bits) * across, dtype=np.int64)
    kernels().count_tiles(cell, block.question, across, bits, bits, sizes)
    layout = Layout(
        np.zeros(len(cell) + AHEAD, np.uint16),
        np.zeros(len(cell) + AHEAD, np.uint16),
        np.concatenate(([0], np.cumsum(sizes))),
        bits,
        bits,
        n_cells,
        cells,
        count_codes(block.question, block.n_questions) > 0,
    )
    kernels().lay_out(cell, block.question, layout)
    return layout


def _bits(n_cells: int, n_questions: int, n_rows: int, n_options: int) -> int:
    """As many questions and cells as the cache holds; more where tiles would be too many for their rows."""
    bits = min(_MOST_BITS, max(0, (TILE_BYTES // (4 * n_options)).bit_length() - 1))
    while bits < _MOST_BITS and parts(n_questions, bits) * parts(n_cells, bits) * LEAST_ROWS > n_rows:
        bits += 1
    return bits
