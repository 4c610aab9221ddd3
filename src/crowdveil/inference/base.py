"""What every method is: frozen configuration whose `fit` turns reports into a finished estimate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from crowdveil.errors import InputError
from crowdveil.estimate import Estimate
from crowdveil.inference.model import Context, Model
from crowdveil.inference.threads import Engine, LocalEngine
from crowdveil.reports import Reports


class Method(ABC):
    """A way to learn truths, or a population's opinion, from reports."""

    __slots__ = ()
    name: ClassVar[str]
    summary: ClassVar[str]
    numeric: ClassVar[bool] = False
    """True when values are numbers, False when they are options."""
    question_local: ClassVar[bool] = False
    """True when a question's estimate depends on the reports to that question alone."""

    @abstractmethod
    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        """The finished estimate; `start` is an earlier one from which an iterative method goes on."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class IterativeMethod(Method):
    """A method that the driver iterates: it supplies the model, and any engine can run it.

    `tol` is the share of the objective below which a change counts as none. `engine` says where the blocks live.
    """

    max_iter: int = 100
    tol: float = 1e-6
    accelerate: bool = False
    engine: Engine = field(default_factory=LocalEngine)

    def __post_init__(self) -> None:
        if self.max_iter < 1:
            raise InputError(f"max_iter must be at least 1; got {self.max_iter}")

    @abstractmethod
    def model(self, context: Context) -> Model:
        """The model of one table."""
