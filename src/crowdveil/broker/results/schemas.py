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
    """One question's estimate; `value` is null where the reports cannot tell.

    `shares` is the distribution over options or levels; `boxes` says of "tick all that apply" how many ticked each.
    """

    question: str
    n_reports: int
    value: str | float | None
    confidence: float | None
    low: float | None
    high: float | None
    shares: list[Share]
    boxes: list[Share]


class ResultPart(BaseModel):
    """Questions with the same domain, estimated together."""

    method: str
    why: str
    warnings: list[str]
    floor: dict[str, Any] | None
    questions: list[QuestionResult]


class Results(BaseModel):
    """The latest batch of a study's estimates, with what protects those who answered."""

    study: str
    n: int
    minimum_n: int
    batch: int
    day: str
    level: float
    privacy: str
    unprotected: int
    gold: dict[str, str] | None
    gold_salt: str | None
    parts: list[ResultPart]
