"""Drawing reports through a channel: one random word a report, compared with integers, nothing rejected.

Byte for byte the same as `device/sampler.js`. This is the only place where an answer becomes a report; the broker
never imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.channel.encoding import Rotate
from crowdveil.domain import EMPTY
from crowdveil.entropy import Entropy, words
from crowdveil.errors import DomainError
from crowdveil.progress import report_progress

# Entropy is taken in slices that stay in the processor's cache.
_SLICE = 1 << 15

# A guide of this many cells (rows × cells a row) stays in the cache too, and pays from this many reports on.
_GUIDE_CELLS = 1 << 19
_GUIDE_BITS = 12
GUIDE_FROM = 1 << 14

_Rows: TypeAlias = NDArray[np.int32]
_Through: TypeAlias = Callable[[_Rows, NDArray[Any]], NDArray[Any]]


def draw(channel: Channel, answers: NDArray[Any], entropy: Entropy) -> NDArray[np.int32]:
    """One report code for each answer code (∅ = -1), consuming one word of `channel.bits` bits each."""
    inputs = _input_codes(channel, np.asarray(answers))
    reports = np.empty(len(inputs), dtype=np.int32)
    through = _sampler(channel, len(inputs))
    for start in range(0, len(inputs), _SLICE):
        part = slice(start, min(start + _SLICE, len(inputs)))
        reports[part] = through(inputs[part], words(entropy, part.stop - part.start, bits=channel.bits))
        report_progress("reports drawn", part.stop, len(inputs))
    return reports


def _sampler(channel: Channel, n: int) -> _Through:
    if isinstance(channel.form, Rotate):
        return Rotation(channel)
    return Guided(channel) if n >= GUIDE_FROM else Thresholds(channel)


def _input_codes(channel: Channel, answers: NDArray[Any]) -> _Rows:
    """Row numbers: ∅ stands in the last row where participation is protected and is refused elsewhere."""
    # Looked at as they came: cut to 32 bits first, a code far too large could pass for a small one.
    lowest, highest = (int(answers.min()), int(answers.max())) if len(answers) else (0, -1)
    codes = answers.astype(np.int32, copy=False)
    if highest >= channel.n_levels or lowest < EMPTY:
        raise DomainError(
            f"answer codes must be from {EMPTY} to {channel.n_levels - 1}; got codes from {lowest} to {highest}"
        )
    if lowest != EMPTY:
        return codes
    if not channel.protects_participation:
        raise DomainError(
            "this channel has no report for a question that was not answered",
            fix="leave such questions out, or protect participation",
        )
    return np.where(codes == EMPTY, np.int32(channel.n_levels), codes)


class Rotation:
    """Randomised response: if u < keep report x, else report (x + 1 + ⌊(u − keep) / lie⌋) mod k."""

    def __init__(self, channel: Channel) -> None:
        assert isinstance(channel.form, Rotate)
        self._form, self._k = channel.form, len(channel.inputs)

    def __call__(self, inputs: _Rows, word: NDArray[Any]) -> NDArray[Any]:
        if self._form.lie == 0:
            return inputs
        # With base = keep − lie, ⌊(max(u, base) − base) / lie⌋ is 0 for u < keep and 1, 2, … for the blocks of lies.
        unsigned = word.dtype.type
        base = unsigned(self._form.keep - self._form.lie)
        shift = np.maximum(word, base)
        shift -= base
        shift //= unsigned(self._form.lie)
        reports = shift.astype(np.uint32, copy=False)
        reports += inputs.view(np.uint32)
        # x mod k for x < 2k: where x < k the unsigned x − k wraps to something huge, and the minimum is x.
        wrapped: NDArray[np.uint32] = np.minimum(reports, reports - np.uint32(self._k))
        return wrapped.view(np.int32)


class Thresholds:
    """report = number of thresholds ≤ u, the thresholds being the prefix sums of the input's row: the plain version."""

    def __init__(self, channel: Channel) -> None:
        with np.errstate(over="ignore"):
            sums = channel.weights.cumsum(axis=1, dtype=np.uint64)
        # The last output that can happen. A threshold behind it is 2^bits, which wraps to 0 in 64 bits.
        last = len(channel.outputs) - 1 - np.argmax(channel.weights[:, ::-1] > 0, axis=1)
        self.thresholds = [row_sums[:end] for row_sums, end in zip(sums, last.tolist(), strict=True)]

    def __call__(self, inputs: _Rows, word: NDArray[Any]) -> NDArray[Any]:
        wide = word.astype(np.uint64, copy=False)
        order = np.argsort(inputs, kind="stable")
        ends = np.searchsorted(inputs[order], np.arange(len(self.thresholds) + 1))
        reports = np.empty(len(inputs), dtype=np.int32)
        for row, (start, end) in enumerate(pairwise(ends)):
            if start < end:
                mine = order[start:end]
                reports[mine] = np.searchsorted(self.thresholds[row], wide[mine], side="right")
        return reports


class Guided:
    """The same report, read from a table by the word's top bits wherever these alone decide it.

    A cell of the guide holds all words with the same top bits. Where no threshold falls inside a cell, its report is
    written there; the few other words, marked −1, are compared with the thresholds.
    """

    def __init__(self, channel: Channel) -> None:
        self._plain = Thresholds(channel)
        thresholds = self._plain.thresholds
        room = max(_GUIDE_CELLS // len(thresholds), 1)
        self._bits = min(_GUIDE_BITS, max(4, room.bit_length() - 1))
        self._word_bits = channel.bits
        first = np.arange(1 << self._bits, dtype=np.uint64) << np.uint64(channel.bits - self._bits)
        last = first + np.uint64((1 << (channel.bits - self._bits)) - 1)
        guide = np.empty((len(thresholds), len(first)), dtype=np.int16)
        for row, row_thresholds in enumerate(thresholds):
            low, high = (
                np.searchsorted(row_thresholds, first, side="right"),
                np.searchsorted(row_thresholds, last, side="right"),
            )
            guide[row] = np.where(low == high, low, -1)
        self._guide = guide.ravel()

    def __call__(self, inputs: _Rows, word: NDArray[Any]) -> NDArray[Any]:
        # The top 16 bits are the last of the word's little-endian halves.
        top = word.view("<u2")[self._word_bits // 16 - 1 :: self._word_bits // 16] >> np.uint16(16 - self._bits)
        cell = inputs << np.int32(self._bits)
        cell += top
        reports: NDArray[Any] = self._guide.take(cell).astype(np.int32)
        unsure = np.flatnonzero(reports < 0)
        if len(unsure):
            reports[unsure] = self._plain(inputs[unsure], word[unsure])
        return reports
