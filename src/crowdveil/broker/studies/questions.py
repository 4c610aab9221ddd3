"""What a question may ask, as the API spells it, and the domain its answers have."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from crowdveil.domain import Choices, Domain, Scale
from crowdveil.errors import InputError

MAX_BOXES = 6
MAX_LEVELS = 1001
QUESTION_ID = r"^[a-z][a-z0-9_-]{0,31}$"

Text: TypeAlias = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2000, strip_whitespace=True, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]+$"),
]
Option: TypeAlias = Annotated[
    str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True, pattern=r"^[^\x00-\x1f\x7f]+$")
]
Number: TypeAlias = Annotated[str, StringConstraints(pattern=r"^-?[0-9]{1,9}(\.[0-9]{1,6})?$")]


class DraftPart(BaseModel):
    """Part of a request: unknown fields are refused, so that nothing slips in unread, and kinds are not changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ChoicesDomain(DraftPart):
    """One of several options."""

    type: Literal["choices"]
    options: list[Option] = Field(min_length=2, max_length=64)

    def domain(self) -> Domain:
        return Choices(tuple(self.options))


class ScaleDomain(DraftPart):
    """A level of an evenly spaced scale."""

    type: Literal["scale"]
    low: Number
    high: Number
    step: Number = "1"

    def domain(self) -> Domain:
        if Decimal(self.step) > 0 and (Decimal(self.high) - Decimal(self.low)) / Decimal(self.step) >= MAX_LEVELS:
            raise InputError(f"a scale may have at most {MAX_LEVELS} levels", fix="choose a larger step")
        return Scale(self.low, self.high, self.step)


class TickAllDomain(DraftPart):
    """Any of several boxes; all boxes together are one answer, so ε is for the whole tick vector."""

    type: Literal["tick-all"]
    boxes: list[Option] = Field(min_length=2, max_length=MAX_BOXES)

    def domain(self) -> Domain:
        """One option per subset, spelled as the JSON list of its boxes; box 0 is bit 0 of the subset's number."""
        Choices(tuple(self.boxes))
        masks = range(2 ** len(self.boxes))
        ticked = ([box for bit, box in enumerate(self.boxes) if mask >> bit & 1] for mask in masks)
        return Choices(tuple(json.dumps(boxes, ensure_ascii=False, separators=(",", ":")) for boxes in ticked))


AnyDomain: TypeAlias = Annotated[ChoicesDomain | ScaleDomain | TickAllDomain, Field(discriminator="type")]


class ShowIf(DraftPart):
    """Skip logic: shown only if an earlier question was answered so. It runs on the device, never here."""

    question: str = Field(pattern=QUESTION_ID)
    any_of: list[Option] = Field(min_length=1, max_length=64)


class Question(DraftPart):
    """One question; `gold` is its known truth, kept from the public definition until the study is published."""

    id: str = Field(pattern=QUESTION_ID)
    text: Text
    domain: AnyDomain
    show_if: ShowIf | None = None
    identifying: list[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z-]{0,31}$")]] = Field(
        default=[], max_length=10
    )
    gold: Option | None = None

    @model_validator(mode="after")
    def _domain_makes_sense(self) -> Question:
        domain = self.domain.domain()
        if self.gold is not None:
            domain.code(self.gold)
        return self
