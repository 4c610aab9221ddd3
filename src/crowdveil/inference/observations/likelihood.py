"""P(report | truth) of every worker: the worker's confusion followed by the known channel.

With answers a, truths t and symbols s (a symbol is one output of one channel),
P(s | t, worker) = Σ_a channel[a, s] · confusion[worker, a, t]. What EM needs back, the expected number of times that a
worker gave the answer a to a question with the truth t, is confusion · Σ_s channel[a, s] · counts[s, t] / P(s | t):
a function of the counts of symbols alone, so that the same sweeps serve every channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.errors import InputError
from crowdveil.inference.kernels.layout import Layout

Array = NDArray[Any]
TINY = 1e-300
MAX_OPTIONS = 2048
_CHUNK = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Emission:
    """All channels of a table side by side: `table` is answer × symbol; channel c's outputs start at `offsets[c]`."""

    table: NDArray[np.float64]
    offsets: NDArray[np.int32]
    n_options: int
    plain: bool

    @property
    def n_answers(self) -> int:
        """Options, and ∅ where a channel takes it in."""
        return len(self.table)

    @property
    def n_symbols(self) -> int:
        return int(self.table.shape[1])

    @property
    def with_empty(self) -> bool:
        """Some channel hides whether a question was answered."""
        return self.n_answers > self.n_options

    def symbols(self, report: Array, channel: Array) -> Array:
        """The symbol of each row."""
        return report if len(self.offsets) == 1 else report + self.offsets[channel]

    def logs(self, confusion: Array, layout: Layout, dtype: Any) -> Array:
        """Log P(symbol | truth) of each cell: cell × truth."""
        logs: Array = np.log(np.maximum(self.chances(confusion, layout), TINY)).astype(dtype)
        return logs

    def chances(self, confusion: Array, layout: Layout) -> Array:
        """P(symbol | truth) of each cell: cell × truth."""
        return _through(self.table, confusion, layout)

    def lift(self, confusion: Array, layout: Layout) -> Array:
        """By how much the answer behind a symbol makes that symbol likelier, on average: cell × truth.

        A report's answer is a with the probability table[a, s] · confusion[a] / P(s), and the symbol then has the
        chance table[a, s] instead of P(s).
        """
        chance = np.maximum(self.chances(confusion, layout), 1e-12)
        lift: Array = _through(self.table**2, confusion, layout) / chance**2
        return lift

    def own(self, confusion: Array, seen: Array, layout: Layout) -> tuple[Array, Array]:
        """The share that one sure report of each cell has in its own chance, and in its worker's counts: cell × truth.

        It weighs `lift` · P(s) in the count whose whole is P(s) · seen.
        """
        whole = seen[self.cells(layout)[0]]
        return self.lift(confusion, layout) / whole, 1 / whole

    def cells(self, layout: Layout) -> tuple[Array, Array]:
        """The worker and the symbol of each cell."""
        cells = np.arange(layout.n_cells) if layout.cells is None else layout.cells
        worker, symbol = np.divmod(cells, self.n_symbols)
        return worker, symbol

    def answers(self, counts: Array, confusion: Array, layout: Layout) -> Array:
        """How often each worker is expected to have given each answer at each truth: worker × answer × truth."""
        ratio = counts / np.maximum(self.chances(confusion, layout), TINY)
        spread = by_worker(self.table.T, ratio, layout, len(confusion))
        spread *= confusion
        return spread


def by_worker(weights: Array, counts: Array, layout: Layout, n_workers: int) -> Array:
    """Σ_s weights[s, column] · counts[worker's cell s, truth]: worker × column × truth."""
    n_symbols, n_options = len(weights), counts.shape[1]
    if layout.cells is None:
        product: Array = np.matmul(weights.T, counts.reshape(-1, n_symbols, n_options))
        return product
    worker, symbol = np.divmod(layout.cells, n_symbols)
    total = np.zeros((n_workers, weights.shape[1], n_options))
    for first in range(0, layout.n_cells, _CHUNK):
        part = slice(first, first + _CHUNK)
        here = weights[symbol[part]][:, :, None] * counts[part][:, None, :]
        # Cells come by worker, so each worker's stand in one run.
        runs = np.flatnonzero(np.diff(worker[part], prepend=-1))
        total[worker[part][runs]] += np.add.reduceat(here, runs, axis=0)
    return total


def _through(table: Array, confusion: Array, layout: Layout) -> Array:
    """Σ_a table[a, symbol] · confusion[worker, a, truth] for each cell: cell × truth."""
    if layout.cells is None:
        product: Array = np.matmul(table.T, confusion)
        return product.reshape(-1, confusion.shape[2])
    worker, symbol = np.divmod(layout.cells, table.shape[1])
    sums = np.empty((layout.n_cells, confusion.shape[2]))
    for first in range(0, layout.n_cells, _CHUNK):
        part = slice(first, first + _CHUNK)
        sums[part] = np.einsum("ca,cat->ct", table.T[symbol[part]], confusion[worker[part]])
    return sums


def build_emission(channels: tuple[Channel, ...], n_options: int) -> Emission:
    """Put the channels side by side; a channel that does not take ∅ in never yields its outputs from it."""
    if n_options > MAX_OPTIONS:
        raise InputError(
            f"this method takes at most {MAX_OPTIONS} options; got {n_options}", fix="use majority or mean"
        )
    n_answers = n_options + any(channel.protects_participation for channel in channels)
    parts = []
    for channel in channels:
        part = np.zeros((n_answers, len(channel.outputs)))
        part[: len(channel.inputs)] = channel.table
        parts.append(part)
    sizes = np.array([0, *(part.shape[1] for part in parts)])
    plain = len(channels) == 1 and channels[0].is_identity
    return Emission(np.hstack(parts), np.cumsum(sizes)[:-1].astype(np.int32), n_options, plain)


def as_labels(n_options: int) -> Emission:
    """Read reports as if they were answers, as methods do that know no channel."""
    return Emission(np.eye(n_options), np.zeros(1, np.int32), n_options, True)
