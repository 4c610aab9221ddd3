"""The model interface: what an iterative method tells the driver, so that one loop serves every engine.

A model never sees all reports, only blocks that hold whole questions; it hands back statistics that add up. Whatever
must survive from one pass to the next inside a block (a layout, messages) is the block's state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import Domain
from crowdveil.estimate import Floor, Skills
from crowdveil.inference.parallel import parallel_slices
from crowdveil.reports import AnyChannel, Reports

Parameters: TypeAlias = Mapping[str, NDArray[Any]]
"""What all blocks share and the M-step sets: arrays by name. Empty: nothing is known yet, start from the votes."""

Statistics: TypeAlias = dict[str, NDArray[Any]]
"""What one pass counts: arrays by name that add, block to block, in any order."""

Columns: TypeAlias = dict[str, NDArray[Any]]
"""Results of a block: arrays by name whose first axis is the block's questions."""

State: TypeAlias = Any
"""What a model keeps per block between passes; only the model looks inside, and it can be pickled."""

Goal: TypeAlias = Literal["rise", "fall", "vanish"]

SINGLE_BLOCK_REPORTS = 200_000
"""A table with fewer reports than this stays in one block: threads would cost more than they bring."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The reports of some whole questions, sorted by question.

    `question` counts from 0 within the block; `worker` is a code among all workers. `gold` holds the known truth
    code of each question of the block, -1 where it is not known.
    """

    question: NDArray[np.int32]
    worker: NDArray[np.int32]
    report: NDArray[np.int32]
    channel: NDArray[np.int16]
    n_questions: int
    number: NDArray[np.float64] | None = None
    gold: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.report)

    @property
    def known(self) -> NDArray[np.int32]:
        """`gold` as loops take it: of no length where nothing is known."""
        return np.empty(0, dtype=np.int32) if self.gold is None else self.gold

    def without_rows(self) -> Block:
        """The block as a model needs it that has copied the rows into its own layout."""
        none = slice(0, 0)
        return replace(
            self,
            question=self.question[none].copy(),
            worker=self.worker[none].copy(),
            report=self.report[none].copy(),
            channel=self.channel[none].copy(),
            number=None,
        )


Rows: TypeAlias = Reports | Block
"""Reports with the columns question, worker, report, channel and number: a whole table or a block of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What is known about the whole table before its rows are read; `n_questions` are those that have reports.

    `rarest` is how often the rarest of the named options is, where reports are answers; 0 where they are not.
    """

    domain: Domain
    channels: tuple[AnyChannel, ...]
    n_workers: int
    n_questions: int
    n_reports: int
    start: Parameters = field(default_factory=dict)
    rarest: int = 0

    @property
    def warm(self) -> bool:
        """An earlier estimate's parameters, matched to these workers, are at hand."""
        return bool(self.start)


class Model(Protocol):
    """One iterative method on one table. It is built from a Context, holds no data, and can be pickled.

    `objective` names what `measure` returns; with the goal "rise" or "fall" it may never go the other way, with
    "vanish" it is a residual. `keeps_rows` is False when `begin` copies all it needs out of the block, `remembers`
    True when a pass changes the state (messages): an engine that moves blocks about must then store it anew.
    `by_worker` and `shared` name the parameters that a warm start takes over: one entry per worker, or for all. An
    estimate keeps these and those named `kept`; the rest is the memory of a pass, for the next pass and the results.
    """

    @property
    def context(self) -> Context: ...

    @property
    def objective(self) -> str: ...

    @property
    def goal(self) -> Goal: ...

    @property
    def keeps_rows(self) -> bool: ...

    @property
    def remembers(self) -> bool: ...

    @property
    def by_worker(self) -> tuple[str, ...]: ...

    @property
    def shared(self) -> tuple[str, ...]: ...

    @property
    def kept(self) -> tuple[str, ...]: ...

    def init(self) -> Parameters:
        """Where to start: the warm start, a guess, or nothing."""

    def begin(self, block: Block) -> State:
        """What this block keeps between passes."""

    def e_step(self, block: Block, parameters: Parameters, state: State) -> tuple[Statistics, State]:
        """Count the block under these parameters."""

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        """The objective at `parameters` from the statistics of a whole pass with them; NaN where there is none."""

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """Better parameters."""

    def project(self, parameters: Parameters) -> Parameters:
        """The nearest parameters that make sense: used after an extrapolation."""

    def finish(self, block: Block, parameters: Parameters, state: State) -> Columns:
        """The results for the block's questions."""


@runtime_checkable
class HasDiagnosticsPass(Protocol):
    """A model that looks at its blocks once more when the loop has ended, for what no pass needs."""

    def score_pass(self, block: Block, parameters: Parameters, state: State) -> Statistics:
        """What is seen in the block, which stays as it is."""

    def absorb_scores(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """The parameters with what was seen."""


@runtime_checkable
class Settling(Protocol):
    """A model that begins with less than it ends with: before, it is not at rest, however little moves."""

    def settling(self, parameters: Parameters) -> bool:
        """A pass with these parameters is one of the beginning."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a run can say beyond its columns: the floor, sentences for the reader, facts for the provenance."""

    floor: Floor | None = None
    warnings: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Closing:
    """What a method says when everything is known: the workers' skills, and the judgement on the whole."""

    skills: Skills | None = None
    judgement: Judgement = field(default_factory=Judgement)


@runtime_checkable
class Judged(Protocol):
    """A model that knows how much its reports could tell; where that is nothing, `prior` stands for the results.

    Where the usual question has too few reports, one with far more still has an estimate of its own.
    """

    def judgement(self, parameters: Parameters, by_channel: NDArray[Any]) -> Judgement:
        """From how many reports came through each channel."""

    def prior(self, answered: NDArray[np.bool_], parameters: Parameters) -> Columns:
        """The columns that change when the estimate is the prior."""

    def by_channel(self, state: State) -> NDArray[np.float64]:
        """How many reports the questions of a block have, channel × question."""


@runtime_checkable
class Sparing(Protocol):
    """A model that can also go on from a start without the parameters named `spare`."""

    @property
    def spare(self) -> tuple[str, ...]: ...


def start_names(model: Model, known: Collection[str]) -> tuple[list[str], list[str]]:
    """Which of the known parameters a model takes over from a start, by worker and for all; none if any is missing."""
    wanted = (model.by_worker, model.shared)
    missing = {name for names in wanted for name in names if name not in known}
    left = set(model.spare) if missing and isinstance(model, Sparing) else set()
    if missing - left:
        return [], []
    by_worker, shared = ([name for name in names if name not in left] for names in wanted)
    return by_worker, shared


def with_prior(
    model: Judged,
    floor: Floor | None,
    columns: Columns,
    counts: NDArray[np.float64],
    parameters: Parameters,
    gold: NDArray[np.int32] | None = None,
) -> Columns:
    """The columns with the prior where the reports of a question, `counts` by channel, cannot say more.

    Truths that are known stay so.
    """
    if floor is None or floor.informative:
        return columns
    informative = floor.told(counts) | (False if gold is None else gold >= 0)
    prior = model.prior(counts.sum(axis=0) > 0, parameters)
    return columns | {
        name: np.where(informative.reshape(-1, *[1] * (value.ndim - 1)), columns[name], value)
        for name, value in prior.items()
    }


def lasting(model: Model, parameters: Parameters) -> Parameters:
    """What an estimate keeps of the parameters that a run ended with."""
    names = {*model.by_worker, *model.shared, *model.kept}
    return {name: value for name, value in parameters.items() if name in names}


def add(total: Statistics, more: Statistics) -> Statistics:
    """The sum of two counts, by name; `total` is changed in place where it can be."""
    for name, value in more.items():
        if name not in total:
            total[name] = np.array(value)
        elif total[name].ndim:
            _add(total[name], value)
        else:
            total[name] = total[name] + value
    return total


def _add(total: NDArray[Any], more: NDArray[Any]) -> None:
    """Each number by itself, so that it does not matter who adds which."""

    def work(rows: slice) -> None:
        total[rows] += more[rows]

    parallel_slices(work, len(total), total[:1].size)
