"""What the API takes and gives, as types: the OpenAPI document is written from these."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from ninja import Path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from crowdveil.broker.studies.draft import LevelName

Item = TypeVar("Item")
Hex32 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Hex64 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Key = Path(..., pattern=r"^[0-9a-f]{32}$", description="A random id.")
Nano = Annotated[int, Field(ge=0, le=2**52)]
State = Literal["draft", "pilot", "open", "closed", "published"]


class Taken(BaseModel):
    """A request body: unknown fields are refused, and a number must be a number, not a text or true."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Given(BaseModel):
    """A response body."""


class Problem(Given):
    """What was refused and why (RFC 9457); `fields` carries the numbers behind the sentence."""

    type: str
    title: str
    status: int
    detail: str
    fields: dict[str, Any] | None = None


class Page(Given, Generic[Item]):
    """A page of a list; `next` is the `after` of the page that follows, null on the last."""

    items: list[Item]
    next: str | None


class Charge(Given):
    """What reports cost: sums in nano-units, each report rounded up; `reports` is how many of them are charged."""

    epsilon_nano: int
    rho_nano: int
    reports: int


class Budget(Given):
    """The broker's mirror of a worker's ledger; the device's own is the one that counts."""

    epsilon_cap_nano: int
    delta: str
    rho_cap_nano: int
    epsilon_spent_nano: int
    rho_spent_nano: int
    epsilon_held_nano: int
    rho_held_nano: int
    unprotected: int


class LogLine(Given):
    """One line of the public log; `entry` is the hash of the other five fields."""

    index: int
    study: Hex32
    sha256: Hex64
    day: str
    previous: Hex64
    entry: Hex64


class Log(Given):
    items: list[LogLine]
    next: int | None
    head: Hex64


class Info(Given):
    """Which broker this is; its key signs definitions and receipts, and amounts are hundredths of its currency."""

    name: str
    version: str
    public_key: Hex64
    demo: bool
    delta: str
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$", examples=["EUR"])]


class CardLevel(Given):
    name: LevelName
    mechanism: str
    protected: bool
    pay_cents: int
    charge: Charge | None


class Card(Given):
    """A study in a list; of kind `tasks` where it is labelled in batches."""

    id: Hex32
    kind: Literal["survey", "tasks"]
    title: str
    purpose: str
    requester: str
    state: State
    sha256: Hex64
    linkable: bool
    protects_participation: bool
    n_questions: int
    selection: str
    levels: list[CardLevel]
    warnings: list[str]
    places: bool


class WorkerCard(Card):
    invited: bool
    status: Literal["new", "reserved", "submitted"]


class SignedStudy(Given):
    """The definition, the same bytes for everybody, and what changes around it."""

    definition: dict[str, Any]
    sha256: Hex64
    signature: str
    public_key: Hex64
    log: LogLine
    state: State
    warnings: list[str]
    places: bool


class Withdraw(Taken):
    withdrawal_key: Hex64


class Withdrawn(Given):
    withdrawn: bool
    study: Hex32


class Reserve(Taken):
    level: LevelName
    study_sha256: Hex64


class Reservation(Given):
    study: Hex32
    level: LevelName
    pay_cents: int
    charge: Charge | None
    expires: str
    late: str
    budget: Budget


class OneReport(Taken):
    """One report: a place in the outputs of the channel it was drawn through."""

    question: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    channel: Hex64
    report: Annotated[int, Field(ge=0, le=65535)]


class Submit(Taken):
    """All reports of one worker to one study."""

    study_sha256: Hex64
    level: LevelName
    consent_version: Annotated[int, Field(ge=0, le=10**6)]
    withdrawal_sha256: Hex64
    reports: Annotated[list[OneReport], Field(max_length=200)]


class Receipt(Given):
    receipt: Hex32
    study: Hex32
    study_sha256: Hex64
    level: LevelName
    n_reports: int
    pay_cents: int
    charge: Charge | None
    day: str
    signature: str
