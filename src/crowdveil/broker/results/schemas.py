"""Results as the API spells them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class Share(BaseModel):
    """How much of the population one option has, with its interval."""

    option: str
    share: float
    low: float | None
    high: float | None


class QuestionResult(BaseModel):
    """One question's estimate; `value` is null where nobody reported, `informative` false where the reports say hardly
    more than a guess.

    `shares` is the distribution over options or levels, or in a study of goal "truth" the probability of each option;
    `boxes` says of "tick all that apply" how many ticked each. The interval of the largest share allows for its having
    been picked; intervals end where the scale ends.
    """

    question: str
    n_reports: int
    value: str | float | None
    confidence: float | None
    low: float | None
    high: float | None
    shares: list[Share]
    boxes: list[Share]
    informative: bool = True


class Needed(BaseModel):
    """What would halve the uncertainty of a guess: so many workers as protected as now, or as many as now at this ε."""

    n_workers: int | None
    epsilon: float | None


class ResultPart(BaseModel):
    """Questions with the same domain, estimated together."""

    method: str
    why: str
    warnings: list[str]
    floor: dict[str, Any] | None
    questions: list[QuestionResult]
    needed: Needed | None = None


class Results(BaseModel):
    """The latest batch of a study's estimates, with what protects those who answered."""

    study: str
    n: int
    minimum_n: int
    batch: int
    day: str
    level: float
    levels_used: list[str] = []
    privacy: str
    unprotected: int
    gold: dict[str, str] | None
    gold_salt: str | None
    parts: list[ResultPart]
