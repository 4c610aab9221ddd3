"""Cut a table of reports into blocks of whole questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.inference.kernels.bincount import count_codes
from crowdveil.inference.kernels.layout import kernels
from crowdveil.inference.protocols import SINGLE_BLOCK_REPORTS, Block, Context, Parameters
from crowdveil.reports import AnyChannel, Reports

LARGE_BLOCK_REPORTS = 2_500_000
"""About the size of blocks of a large table: only one at a time is held in two layouts, so memory stays low."""


def table_context(reports: Reports, start: Parameters | None = None) -> Context:
    """The table without its rows."""
    n_answered = int(np.count_nonzero(count_codes(reports.question, reports.n_questions)))
    named = count_codes(reports.report, reports.domain.size) if are_answers(reports.channels) else np.zeros(0, np.int64)
    sizes = reports.n_workers, n_answered, len(reports)
    return Context(reports.domain, reports.channels, *sizes, start or {}, min_option_count(named))


def are_answers(channels: tuple[AnyChannel, ...]) -> bool:
    """Reports are codes of the domain: no channel changes them."""
    return bool(channels) and all(isinstance(channel, Channel) and channel.is_identity for channel in channels)


def min_option_count(named: NDArray[np.int64]) -> int:
    """How often the rarest of those options occurs that do."""
    return int(named[named > 0].min(initial=named.max(initial=0)))


def blocks_for(n_reports: int, threads: int) -> int:
    """How many blocks: one for each thread, more where the table is large."""
    return max(threads, min(n_reports // LARGE_BLOCK_REPORTS, 4 * threads, 16))


def cuts(counts: NDArray[np.int64], n_blocks: int) -> NDArray[np.int64]:
    """Borders between questions, so that the blocks have about equally many reports; `counts` is by question."""
    ends = np.cumsum(counts)
    n_reports = int(ends[-1]) if len(ends) else 0
    if n_reports < SINGLE_BLOCK_REPORTS or n_blocks <= 1:
        return np.array([0, len(counts)])
    wanted = np.arange(1, n_blocks) * (n_reports / n_blocks)
    inner = np.searchsorted(ends, wanted) + 1
    return np.unique(np.concatenate(([0], np.minimum(inner, len(counts)), [len(counts)])))


def split_blocks(reports: Reports, n_blocks: int, gold: NDArray[np.int32] | None = None) -> Iterator[Block]:
    """One block after the other, each made when it is asked for; large tables in order are not copied."""
    counts = count_codes(reports.question, reports.n_questions)
    borders = cuts(counts, n_blocks)
    ordered = len(reports) >= SINGLE_BLOCK_REPORTS and bool(np.all(reports.question[1:] >= reports.question[:-1]))
    for low, high in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        rows = _run(reports, low, high) if ordered else _rows(reports, low, high, counts[low:high])
        yield _block(reports, rows, counts[low:high], None if gold is None else gold[low:high])


def _block(
    reports: Reports,
    rows: slice | NDArray[Any],
    counts: NDArray[np.int64],
    gold: NDArray[np.int32] | None,
) -> Block:
    def taken(column: NDArray[Any]) -> NDArray[Any]:
        chosen: NDArray[Any] = column[rows] if isinstance(rows, slice) else kernels().take(column, rows)
        return chosen

    return Block(
        np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        taken(reports.worker),
        taken(reports.report),
        # One channel needs no column: a single zero, seen from every row.
        taken(reports.channel) if len(reports.channels) > 1 else np.broadcast_to(np.int16(0), int(counts.sum())),
        len(counts),
        None if reports.number is None else taken(reports.number),
        gold,
    )


def _run(reports: Reports, low: int, high: int) -> slice:
    """The rows of the questions from `low` to `high` (exclusive) where the table is in their order."""
    return slice(*np.searchsorted(reports.question, [low, high]).tolist())


def _rows(reports: Reports, low: int, high: int, counts: NDArray[np.int64]) -> NDArray[Any]:
    """The rows of the questions from `low` to `high` (exclusive), by question."""
    if len(reports) < SINGLE_BLOCK_REPORTS:
        # Ties are broken by everything else, so that the order in which reports came cannot show in the last digit.
        extra = () if reports.number is None else (reports.number,)
        return np.lexsort((*extra, reports.report, reports.channel, reports.worker, reports.question))
    rows = np.empty(int(counts.sum()), dtype=np.int32 if len(reports) < 2**31 else np.int64)
    kernels().sort_rows(reports.question, low, high, np.cumsum(counts) - counts, rows)
    return rows
