"""The rules of a pool as a requester writes them; they stand in the signed definition."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from crowdveil.broker.studies.questions import DraftPart

MAX_TASKS = 100_000
MAX_BATCH_SIZE = 50


class StopRule(DraftPart):
    """A task leaves the pool when its label has this probability and rests on at least so many reports."""

    probability: Annotated[str, StringConstraints(pattern=r"^0\.[0-9]{1,4}$")]
    min_reports: Annotated[int, Field(ge=1, le=10_000)]

    @model_validator(mode="after")
    def _above_guessing(self) -> StopRule:
        if not Decimal("0.5") <= Decimal(self.probability) < 1:
            raise ValueError(f"the probability of a stop rule must be from 0.5 to 0.9999; got {self.probability}")
        return self


class PoolRules(DraftPart):
    """How tasks are handed out: `redundancy` reports each, never above `max_reports`, in batches of `batch_size`.

    `tasks_about_items` says that the tasks are about items and not about the worker; only then may a worker choose the
    guarantee of each single answer.
    """

    batch_size: Annotated[int, Field(ge=1, le=MAX_BATCH_SIZE)] = 20
    redundancy: Annotated[int, Field(ge=1, le=10_000)]
    max_reports: Annotated[int, Field(ge=1, le=10_000)]
    stop: StopRule | None = None
    assignment: Literal["fewest-first", "listed"] = "fewest-first"
    adaptive: Literal[False] = False
    tasks_about_items: bool = False

    @model_validator(mode="after")
    def _bound_above_redundancy(self) -> PoolRules:
        if self.max_reports < self.redundancy:
            raise ValueError(f"max_reports must be at least the redundancy {self.redundancy}; got {self.max_reports}")
        return self
