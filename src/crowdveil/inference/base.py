"""What every method is: frozen configuration whose `fit` turns reports into a finished estimate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from crowdveil.estimate import Estimate
from crowdveil.inference.engine.local import Engine, LocalEngine
from crowdveil.inference.protocols import Closing, Columns, Context, Model, Parameters, Rows, Statistics
from crowdveil.reports import Reports
from crowdveil.validation import AtLeastOne, Number, check_settings


class Method(ABC):
    """A way to learn truths, or a population's opinion, from reports."""

    __slots__ = ()
    name: ClassVar[str]
    summary: ClassVar[str]
    numeric: ClassVar[bool] = False
    """True when values are numbers, False when they are options."""
    shares: ClassVar[bool] = False
    """True when posteriors and confidences are shares of votes, which are no probabilities of being right."""

    @abstractmethod
    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        """The finished estimate; `start` is an earlier one from which an iterative method goes on."""

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        """Sums over rows and their results that `closing` needs; those of blocks add."""
        return {}

    @property
    def tallies(self) -> bool:
        """Some methods say all they have to say without a tally."""
        return type(self).tally is not Method.tally

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        """Skills (by worker code) and floor, from the parameters and the tally of the whole table."""
        return Closing()


@runtime_checkable
class Modelled(Protocol):
    """A method that the driver can run through its model, on any engine."""

    @property
    def max_iter(self) -> int: ...

    @property
    def tol(self) -> float: ...

    @property
    def accelerate(self) -> bool: ...

    def model(self, context: Context) -> Model:
        """The model of one table."""


@runtime_checkable
class Recalling(Protocol):
    """A method whose model can take the workers' earlier work into account."""

    @property
    def history(self) -> Mapping[Hashable, Any]: ...

    def recalling(self, model: Any, codes: Mapping[Hashable, int]) -> Model:
        """The model with the history of the workers that have these codes."""


class WithoutIteration(Method):
    """A method whose model needs `max_iter` passes and no more; none, or one that sizes up the crowd."""

    __slots__ = ()
    max_iter: ClassVar[int] = 0
    tol: ClassVar[float] = 0.0
    accelerate: ClassVar[bool] = False

    @abstractmethod
    def model(self, context: Context) -> Model:
        """The model of one table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IterativeMethod(Method):
    """A method that the driver iterates: it supplies the model, and any engine can run it.

    `tol` is the share of the objective below which a change counts as none; below 0 all `max_iter` iterations are made.
    `engine` says where the blocks live.
    """

    # A residual has no top to leap to; methods with an objective make this a setting.
    accelerate: ClassVar[bool] = False

    max_iter: AtLeastOne = 100
    tol: Number = 1e-6
    engine: Engine = field(default_factory=LocalEngine)

    def __post_init__(self) -> None:
        check_settings(self)

    @abstractmethod
    def model(self, context: Context) -> Model:
        """The model of one table."""
