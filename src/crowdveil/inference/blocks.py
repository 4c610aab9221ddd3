"""Cut a table of reports into blocks of whole questions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.model import Block, Context, Parameters
from crowdveil.reports import Reports

SMALL = 200_000
"""A table with fewer reports than this stays in one block: threads would cost more than they bring."""


def context_of(reports: Reports, start: Parameters | None = None) -> Context:
    """The table without its rows."""
    return Context(reports.domain, reports.channels, reports.n_workers, reports.n_questions, len(reports), start or {})


def cuts(reports: Reports, n_blocks: int) -> NDArray[np.int64]:
    """Borders between questions, so that the blocks have about equally many reports."""
    if len(reports) < SMALL or n_blocks <= 1:
        return np.array([0, reports.n_questions])
    ends = np.cumsum(np.bincount(reports.question, minlength=reports.n_questions))
    wanted = np.arange(1, n_blocks) * (len(reports) / n_blocks)
    inner = np.searchsorted(ends, wanted) + 1
    return np.unique(np.concatenate(([0], np.minimum(inner, reports.n_questions), [reports.n_questions])))


def blocks_of(reports: Reports, n_blocks: int, gold: NDArray[np.int32] | None = None) -> Iterator[Block]:
    """One block after the other, each made when it is asked for; sorted tables are not copied."""
    borders = cuts(reports, n_blocks)
    in_order = bool(np.all(reports.question[1:] >= reports.question[:-1]))
    for low, high in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        yield block_of(reports, low, high, None if gold is None else gold[low:high], in_order=in_order)


def block_of(reports: Reports, low: int, high: int, gold: NDArray[np.int32] | None, *, in_order: bool) -> Block:
    """The block of the questions from `low` to `high` (exclusive)."""
    rows = _slice(reports, low, high) if in_order else _sorted_rows(reports, low, high)
    question = reports.question[rows]
    return Block(
        question if low == 0 else question - np.int32(low),
        reports.worker[rows],
        reports.report[rows],
        reports.channel[rows],
        high - low,
        None if reports.number is None else reports.number[rows],
        gold,
    )


def _slice(reports: Reports, low: int, high: int) -> slice:
    first, last = np.searchsorted(reports.question, [low, high])
    return slice(int(first), int(last))


def _sorted_rows(reports: Reports, low: int, high: int) -> NDArray[np.int64]:
    whole = low == 0 and high == reports.n_questions
    rows = np.arange(len(reports)) if whole else np.flatnonzero((reports.question >= low) & (reports.question < high))
    # Ties are broken by everything else, so that the order in which reports came cannot show in the last digit.
    extra = () if reports.number is None else (reports.number[rows],)
    keys = (*extra, reports.report[rows], reports.channel[rows], reports.worker[rows], reports.question[rows])
    return rows[np.lexsort(keys)]
