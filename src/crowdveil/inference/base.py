"""What every method is: frozen configuration whose `fit` turns reports into a finished estimate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from crowdveil.answers import Answers
from crowdveil.domain import Domain
from crowdveil.errors import InputError
from crowdveil.estimate import Estimate
from crowdveil.files.frames import Names, reports_from
from crowdveil.inference.engine.local import Engine, LocalEngine
from crowdveil.inference.protocols import Closing, Columns, Context, Model, Parameters, Rows, Statistics
from crowdveil.registry import check_names
from crowdveil.reports import AnyChannel, Reports
from crowdveil.validation import AtLeastOne, Number, check_settings


def as_reports(
    data: Any,
    *,
    worker: Names = None,
    question: Names = None,
    answer: Hashable | None = None,
    domain: Domain | None = None,
    channels: Sequence[AnyChannel] | None = None,
    normalize: bool = False,
) -> Reports:
    """Reports as they are; unprotected answers, or a table, as reports."""
    about_tables = (worker, question, answer, domain, channels, normalize or None)
    if isinstance(data, Reports | Answers):
        if any(each is not None for each in about_tables):
            raise InputError(f"columns and domains are for tables; got {type(data).__name__}", fix="leave them out")
        return data if isinstance(data, Reports) else Reports.unprotected(data)
    columns = {"worker": worker, "question": question, "answer": answer}
    return reports_from(data, channels, domain, normalize=normalize, **columns)


def _accept_frames(fit: Callable[..., Estimate]) -> Callable[..., Estimate]:
    @wraps(fit)
    def fit_any(self: Method, reports: Any, start: Any = None, **table: Any) -> Estimate:
        if start is not None and not isinstance(start, Estimate):
            fix = "read one with crowdveil.files.estimates.read_start"
            raise InputError(f"start must be an earlier Estimate; got {type(start).__name__}", fix=fix)
        return fit(self, as_reports(reports, **table), start)

    return fit_any


class Method(ABC):
    """Base class of all methods: configuration only, whose `fit` estimates truths, or population shares, from reports.

    `name` is what the registry and the command line call the method, `summary` one sentence about it.
    """

    __slots__ = ()
    name: ClassVar[str]
    summary: ClassVar[str]
    numeric: ClassVar[bool] = False
    """True when values are numbers, False when they are options."""
    shares: ClassVar[bool] = False
    """True when posteriors and confidences are shares of votes, which are no probabilities of being right."""

    def __init_subclass__(cls, **parameters: Any) -> None:
        """Whatever a method's own `fit` does with reports, it takes frames too."""
        super().__init_subclass__(**parameters)
        if "fit" in vars(cls) and not hasattr(cls.fit, "__wrapped__"):
            cls.fit = _accept_frames(cls.fit)  # type: ignore[method-assign]

    @abstractmethod
    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        """The finished estimate; `start` is an earlier one from which an iterative method goes on.

        Instead of `Reports`, any table that `reports_from` takes: a frame of pandas or polars, an Arrow table, a
        dictionary of lists. Its columns are named by `worker`, `question` and `answer`, its domain by `domain`, the
        channels of its reports by `channels`; `normalize` joins spellings of one option.
        """

    def fit_predict(
        self,
        data: Any,
        *,
        worker: Names = None,
        question: Names = None,
        answer: Hashable | None = None,
        domain: Domain | None = None,
        channels: Sequence[AnyChannel] | None = None,
        normalize: bool = False,
    ) -> dict[Hashable, Any]:
        """The value of each question, by its id; None where nobody answered.

        >>> from crowdveil import Majority
        >>> table = {"worker": [1, 2, 3], "task": ["q1", "q1", "q1"], "label": [1, 1, 0]}
        >>> Majority().fit_predict(table)
        {'q1': 1}
        """
        columns = {"worker": worker, "question": question, "answer": answer}
        reports = as_reports(data, domain=domain, channels=channels, normalize=normalize, **columns)
        estimate = self.fit(reports)
        return dict(zip(estimate.questions.tolist(), estimate.values(), strict=True))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name, as scikit-learn's tools ask for them; no setting has settings of its own."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.init}  # type: ignore[arg-type]

    def clone(self, **changes: Any) -> Self:
        """The same method with some settings changed; a method itself never changes.

        >>> from crowdveil import DawidSkene
        >>> DawidSkene().clone(max_iter=10).max_iter
        10
        """
        check_names(f"method {self.name}", type(self), changes)
        return replace(self, **changes)  # type: ignore[type-var]

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
