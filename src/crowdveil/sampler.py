"""Drawing reports through a channel: one random word a report, compared with integers, nothing rejected.

Byte for byte the same as `device/sampler.js`. This is the only place where an answer becomes a report; the broker
never imports it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.domain import EMPTY
from crowdveil.entropy import Entropy, words
from crowdveil.errors import DomainError
from crowdveil.forms import Rotate

# Entropy is taken in slices that stay in the processor's cache.
_SLICE = 1 << 17


def draw(channel: Channel, answers: NDArray[Any], entropy: Entropy) -> NDArray[np.int32]:
    """One report code for each answer code (∅ = -1), consuming one word of `channel.bits` bits each."""
    inputs = _input_codes(channel, np.asarray(answers))
    reports = np.empty(len(inputs), dtype=np.int32)
    through = _rotate if isinstance(channel.form, Rotate) else _Prefix(channel)
    for start in range(0, len(inputs), _SLICE):
        part = slice(start, min(start + _SLICE, len(inputs)))
        word = words(entropy, part.stop - part.start, bits=channel.bits)
        reports[part] = through(channel, inputs[part], word)
    return reports


def _input_codes(channel: Channel, answers: NDArray[Any]) -> NDArray[np.int32]:
    """Row numbers: ∅ stands in the last row where participation is protected and is refused elsewhere."""
    codes = answers.astype(np.int32, copy=False)
    if len(codes) and (codes.max() >= channel.n_levels or codes.min() < EMPTY):
        raise DomainError(f"an answer code must be below {channel.n_levels}; got {codes.max()}")
    if not (empty := codes == EMPTY).any():
        return codes
    if not channel.protects_participation:
        raise DomainError(
            "this channel has no report for a question that was not answered",
            fix="leave such questions out, or protect participation",
        )
    return np.where(empty, np.int32(channel.n_levels), codes)


def _rotate(channel: Channel, inputs: NDArray[np.int32], word: NDArray[Any]) -> NDArray[Any]:
    """If u < keep report x, else report (x + 1 + ⌊(u − keep) / lie⌋) mod k."""
    form, k = channel.form, len(channel.inputs)
    assert isinstance(form, Rotate)
    if form.lie == 0:
        return inputs
    # With base = keep − lie, ⌊(max(u, base) − base) / lie⌋ is 0 for u < keep and 1, 2, … for the blocks of lies.
    base = word.dtype.type(form.keep - form.lie)
    shift = np.maximum(word, base)
    shift -= base
    shift //= word.dtype.type(form.lie)
    reports: NDArray[np.int32] = shift.astype(np.int32)
    reports += inputs
    reports[reports >= k] -= k
    return reports


class _Prefix:
    """report = number of thresholds ≤ u, the thresholds being the prefix sums of the input's row."""

    def __init__(self, channel: Channel) -> None:
        with np.errstate(over="ignore"):
            self._thresholds = channel.weights.cumsum(axis=1, dtype=np.uint64)[:, :-1]
        # The last output that can happen. A threshold behind it is 2^bits, which wraps to 0 in 64 bits.
        self._last = len(channel.outputs) - 1 - np.argmax(channel.weights[:, ::-1] > 0, axis=1)

    def __call__(self, channel: Channel, inputs: NDArray[np.int32], word: NDArray[Any]) -> NDArray[Any]:
        wide = word.astype(np.uint64, copy=False)
        order = np.argsort(inputs, kind="stable")
        ends = np.searchsorted(inputs[order], np.arange(len(channel.inputs) + 1))
        reports = np.empty(len(inputs), dtype=np.int32)
        for row, (start, end) in enumerate(pairwise(ends)):
            mine = order[start:end]
            reports[mine] = np.searchsorted(self._thresholds[row, : self._last[row]], wide[mine], side="right")
        return reports
