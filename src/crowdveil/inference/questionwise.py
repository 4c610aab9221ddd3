"""Methods without iteration as models, so that every engine can run them block by block.

Some look at one question at a time and need no pass at all. Means and medians need one: how far answers spread in the
whole crowd says how wide the interval of a question with few answers must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.model import Block, Columns, Context, Goal, Parameters, Rows, Statistics
from crowdveil.inference.numbers import common_freedom, pooled, rounding, shrunk, spread_of, with_interval

Array = NDArray[Any]


class ByQuestion(Protocol):
    """A method whose results for a question depend on the reports to that question alone."""

    def columns(self, rows: Rows, context: Context) -> Columns:
        """The results for the questions of these rows."""


class ByCentre(Protocol):
    """A method that finds the centre of each question's answers."""

    def centres(self, rows: Rows, context: Context) -> Centres | Columns:
        """The centres, or finished columns where the spread of the crowd does not matter."""


@dataclass(frozen=True, slots=True, eq=False)
class Centres:
    """By question: the value as it comes, its answers' squared distances from it and their degrees of freedom.

    The variance of a value is `scale` times the variance of one answer, and `extra` on top; a value `rounded` is a mean
    of levels, which has the error of rounding besides.
    """

    value: Array
    squares: Array
    freedom: Array
    scale: Array
    answered: Array
    extra: float = 0.0
    rounded: bool = False


@dataclass(frozen=True, slots=True)
class _NoPasses:
    """What a model has to say that is never iterated."""

    context: Context

    objective: ClassVar[str] = ""
    goal: ClassVar[Goal] = "vanish"
    remembers: ClassVar[bool] = False
    by_worker: ClassVar[tuple[str, ...]] = ()
    shared: ClassVar[tuple[str, ...]] = ()

    def init(self) -> Parameters:
        return {}

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        return 0.0

    def project(self, parameters: Parameters) -> Parameters:
        return parameters


@dataclass(frozen=True, slots=True)
class QuestionModel(_NoPasses):
    """No parameters, no passes: the results follow from the rows."""

    method: ByQuestion

    keeps_rows: ClassVar[bool] = True

    def begin(self, block: Block) -> None:
        return None

    def e_step(self, block: Block, parameters: Parameters, state: None) -> tuple[Statistics, None]:
        return {}, None

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        return {}

    def finish(self, block: Block, parameters: Parameters, state: None) -> Columns:
        return self.method.columns(block, self.context)


@dataclass(frozen=True, slots=True)
class CentreModel(_NoPasses):
    """Parameters: `crowd`, the variance of an answer around its question's centre, and its worth in answers."""

    method: ByCentre

    keeps_rows: ClassVar[bool] = False

    def begin(self, block: Rows) -> Centres | Columns:
        return self.method.centres(block, self.context)

    def e_step(
        self, block: Rows, parameters: Parameters, state: Centres | Columns
    ) -> tuple[Statistics, Centres | Columns]:
        if isinstance(state, dict):
            return dict.fromkeys(("squares", "freedom", "known", "spread"), np.zeros(())), state
        return spread_of(state.squares, state.freedom), state

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        crowd = pooled(statistics["squares"], statistics["freedom"], self.context.domain)
        return {"crowd": np.array(crowd), "prior": np.array(common_freedom(statistics, crowd))}

    def finish(self, block: Rows, parameters: Parameters, state: Centres | Columns) -> Columns:
        if isinstance(state, dict):
            return state
        crowd, prior = float(parameters["crowd"]), float(parameters["prior"])
        spread = shrunk(state.squares, state.freedom, crowd, prior)
        variance = spread * state.scale + state.extra
        if state.rounded:
            variance += rounding(self.context.domain, spread)
        return with_interval(state.value, variance, state.freedom + prior, state.answered, self.context.domain)

    def at_once(self, rows: Rows) -> Columns:
        """All of a table in one go."""
        state = self.begin(rows)
        return self.finish(rows, self.m_step(self.e_step(rows, {}, state)[0], {}), state)
