"""The local engine: blocks in memory, a thread for each processor; compiled kernels release the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.engine.blocks import blocks_for, split_blocks
from crowdveil.inference.parallel import crew, pool_map, processors
from crowdveil.inference.protocols import Block, Columns, HasDiagnosticsPass, Model, Parameters, State, Statistics, add
from crowdveil.reports import Reports
from crowdveil.validation import Rule, check_settings

T = TypeVar("T")
_THREADS = Rule("from 0 to 1024", lambda threads: 0 <= threads <= 1024)


class Passes(Protocol):
    """Reports laid out for one model: all the driver knows of where the blocks are."""

    def e_pass(self, parameters: Parameters) -> Statistics:
        """The statistics of all blocks under these parameters; advances their states."""

    def score_pass(self, parameters: Parameters) -> Statistics:
        """What a model that looks once more sees in all blocks."""

    @property
    def threads(self) -> int:
        """How many may work between two passes."""


class Session(Passes, Protocol):
    """Blocks whose results fit into memory."""

    def finish(self, parameters: Parameters) -> Columns:
        """The results of all questions; nothing can be asked of the session afterwards."""


@runtime_checkable
class Engine(Protocol):
    """Somewhere blocks can live."""

    name: ClassVar[str]

    def open(self, model: Model, reports: Reports, gold: NDArray[np.int32] | None = None) -> Session:
        """Lay the reports out for this model."""


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Threads over blocks on this machine; `threads` 0 means one per processor that may be used."""

    threads: Annotated[int, _THREADS] = 0
    name: ClassVar[str] = "local"

    def __post_init__(self) -> None:
        check_settings(self)

    def open(self, model: Model, reports: Reports, gold: NDArray[np.int32] | None = None) -> LocalSession:
        threads = self.threads or processors()
        # Blocks are made one after the other, and a model with a layout of its own lets go of the rows at once.
        held = [_open_block(model, block) for block in split_blocks(reports, blocks_for(len(reports), threads), gold)]
        return LocalSession(model, [block for block, _ in held], [state for _, state in held], threads)


@dataclass(slots=True)
class LocalSession:
    """Blocks and their states in memory."""

    model: Model
    blocks: list[Block]
    states: list[State]
    threads: int

    def e_pass(self, parameters: Parameters) -> Statistics:
        def count(index: int) -> Statistics:
            statistics, self.states[index] = self.model.e_step(self.blocks[index], parameters, self.states[index])
            return statistics

        return self._sum_over_blocks(count)

    def score_pass(self, parameters: Parameters) -> Statistics:
        model = self.model
        assert isinstance(model, HasDiagnosticsPass)
        return self._sum_over_blocks(lambda index: model.score_pass(self.blocks[index], parameters, self.states[index]))

    def finish(self, parameters: Parameters) -> Columns:
        def one(index: int) -> Columns:
            # The layout goes as the results come: the session ends here.
            state, self.states[index] = self.states[index], None
            return self.model.finish(self.blocks[index], parameters, state)

        parts = list(self._each(one))
        return {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}

    def _sum_over_blocks(self, work: Callable[[int], Statistics]) -> Statistics:
        total: Statistics = {}
        # Added in the order of the blocks, so that the same table gives the same bits every time.
        for statistics in self._each(work):
            total = add(total, statistics) if total else statistics
        return total

    def _each(self, work: Callable[[int], T]) -> Sequence[T]:
        with crew(self.threads):
            return pool_map(work, len(self.blocks))


def _open_block(model: Model, block: Block) -> tuple[Block, State]:
    state = model.begin(block)
    return block if model.keeps_rows else block.without_rows(), state
