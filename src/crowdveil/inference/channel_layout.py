"""What message passing keeps of a block between sweeps: the rows by question, the messages, the posteriors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.layout import compiled_or_plain
from crowdveil.inference.model import Block

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class MessageState:
    """Rows sorted by question, `starts` opening each question's run; `message` and `posterior` change in place."""

    question: NDArray[np.int32]
    worker: NDArray[np.int32]
    symbol: NDArray[np.int32]
    starts: NDArray[np.int64]
    message: Array
    posterior: Array

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Questions with at least one report."""
        answered: NDArray[np.bool_] = np.diff(self.starts) > 0
        return answered


def state_of(block: Block, symbol: Array, message: Array, n_columns: int) -> MessageState:
    """The state before any message was sent: flat posteriors, in the precision of the messages."""
    starts = np.searchsorted(block.question, np.arange(block.n_questions + 1)).astype(np.int64)
    return MessageState(
        np.array(block.question),
        np.array(block.worker),
        np.array(symbol, dtype=np.int32),
        starts,
        message,
        np.full((block.n_questions, n_columns), 1.0 / max(n_columns, 1), dtype=message.dtype),
    )


@cache
def message_kernels() -> ModuleType:
    """The loops of message passing, loaded when first used."""
    return compiled_or_plain("channel_kernels", "channel_plain")
