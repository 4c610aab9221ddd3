"""What message passing keeps of a block between sweeps: the rows by question, the messages, the posteriors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.protocols import Block

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class MessageState:
    """Rows sorted by question, `starts` opening each question's run; the last three change in place.

    `foretold` is how well the reports of a question were foretold, each by all the others: a sum of logarithms.
    """

    question: NDArray[np.int32]
    worker: NDArray[np.int32]
    symbol: NDArray[np.int32]
    starts: NDArray[np.int64]
    message: Array
    posterior: Array
    foretold: NDArray[np.float64]

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Questions with at least one report."""
        answered: NDArray[np.bool_] = np.diff(self.starts) > 0
        return answered


def build_message_state(block: Block, symbol: Array, message: Array, n_columns: int) -> MessageState:
    """The state before any message was sent: flat posteriors, in the precision of the messages."""
    starts = np.searchsorted(block.question, np.arange(block.n_questions + 1)).astype(np.int64)
    return MessageState(
        np.array(block.question),
        np.array(block.worker),
        np.array(symbol, dtype=np.int32),
        starts,
        message,
        np.full((block.n_questions, n_columns), 1.0 / max(n_columns, 1), dtype=message.dtype),
        np.zeros(block.n_questions),
    )


@cache
def message_kernels() -> ModuleType:
    """The loops of message passing, loaded when first used."""
    return import_module("crowdveil.inference.kernels.messages")
