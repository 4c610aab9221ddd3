"""The layout of a block for the kernels: rows by blocks of cells, a cell being one worker giving one symbol."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.counting import counted, pieces
from crowdveil.inference.model import Block

CACHE_BYTES = 256 * 1024
"""A block's table should stay in the second-level cache beside what streams through it."""
MAX_ROWS = 2**16


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Rows as (cell within its block, question), 6 bytes each; `ends` closes each block of `per_block` cells.

    `cells` names the cells that occur (worker × n_symbols + symbol); None when all of them have a place.
    """

    row: NDArray[np.uint16]
    question: NDArray[np.int32]
    ends: NDArray[np.int64]
    per_block: int
    n_cells: int
    cells: NDArray[np.int64] | None
    answered: NDArray[np.bool_]


@cache
def kernels() -> ModuleType:
    """The compiled loops, or the plain ones where Numba is missing; loaded when first used."""
    try:
        return import_module("crowdveil.inference.kernels")
    except ImportError:
        return import_module("crowdveil.inference.plain")


def layout_of(block: Block, symbol: NDArray[Any], n_symbols: int, n_workers: int, n_options: int) -> Layout:
    """Lay a block out; where most cells would stay empty, only those that occur get a place."""
    n_cells, cells = n_workers * n_symbols, None
    cell = block.worker.astype(np.int32 if n_cells < 2**31 else np.int64) * n_symbols + symbol
    if n_cells > 4 * len(block) + 4096:
        cells, cell = np.unique(cell, return_inverse=True)
        n_cells = len(cells)
    per_block = _per_block(n_cells, n_options, len(block), block.n_questions)
    counts = _block_sizes(cell, per_block, max(1, -(-n_cells // per_block)))
    row, place = np.empty(len(cell), np.uint16), np.empty(len(cell), np.int32)
    kernels().lay_out(cell, block.question, per_block, np.cumsum(counts) - counts, row, place)
    answered = counted(block.question, block.n_questions) > 0
    return Layout(row, place, np.cumsum(counts), per_block, n_cells, cells, answered)


def _per_block(n_cells: int, n_options: int, n_rows: int, n_questions: int) -> int:
    """Small enough for the cache, yet so few blocks that each still meets about every second question."""
    for_cache = CACHE_BYTES // (4 * n_options)
    for_rows = n_cells * n_questions // (2 * n_rows) if n_rows else n_cells
    return int(np.clip(max(for_cache, for_rows), 1, MAX_ROWS))


def _block_sizes(cell: NDArray[Any], per_block: int, n_blocks: int) -> NDArray[np.int64]:
    sizes = np.zeros(n_blocks, dtype=np.int64)
    for piece in pieces(len(cell)):
        sizes += np.bincount(cell[piece] // per_block, minlength=n_blocks)
    return sizes
