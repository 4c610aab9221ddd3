"""What requesters and operators send and get."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from crowdveil.broker.api.schemas.common import Given, Hex32, Hex64, State, Taken
from crowdveil.broker.api.schemas.worker import Label
from crowdveil.broker.studies.draft import Draft
from crowdveil.broker.webhooks.notices import Event

Name = Annotated[
    str, StringConstraints(min_length=1, max_length=80, strip_whitespace=True, pattern=r"^[^\x00-\x1f\x7f]+$")
]
Password = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Code = Annotated[str, StringConstraints(pattern=r"^[0-9]{6}$")]


class SignIn(Taken):
    name: Name
    password: Password
    code: Code | None = None


class SignedIn(Given):
    token: str
    expires: str
    role: Literal["requester", "operator"]
    enrol: bool


class Enrol(Taken):
    new_password: Password


class Enrolment(Given):
    totp_secret: str
    totp_uri: str


class Confirm(Taken):
    code: Code


class StaffAccount(Given):
    id: Hex32
    name: str
    role: Literal["requester", "operator"]


class NewStaffToken(Taken):
    label: Label = ""
    days: Annotated[int, Field(ge=1, le=366)] = 30


class Money(Given):
    budget_cents: int
    held_cents: int
    paid_cents: int
    commission_cents: int


class StudyView(Given):
    """A requester's own study."""

    id: Hex32
    state: State
    draft: Draft
    sha256: Hex64 | None
    guarantees: dict[str, str]
    money: Money
    warnings: list[str]


class AddMoney(Taken):
    add_cents: Annotated[int, Field(ge=1, le=10**12)]


class Progress(Given):
    state: State
    quota: int
    taken: int
    held: int
    money: Money
    n_batches: int


class Select(Taken):
    n: Annotated[int, Field(ge=1, le=10**6)] | None = None


class Selected(Given):
    invited: int
    new: int
    expected_rmse: float | None
    stopped_because: str


class Quality(Given):
    """Workers of a linkable study by their panel name: skill with its interval, and gold scored from reports."""

    meaning: str
    workers: list[dict[str, Any]]


class ExportPart(Given):
    part: int
    questions: list[str]
    domain: dict[str, Any]


class ExportParts(Given):
    parts: list[ExportPart]


class NewWebhook(Taken):
    url: Annotated[str, StringConstraints(max_length=500, pattern=r"^https?://[!-~]+$")]
    events: Annotated[list[Event], Field(min_length=1, max_length=6)]


class WebhookLine(Given):
    id: Hex32
    url: str
    events: list[str]


class WebhookList(Given):
    items: list[WebhookLine]


class WebhookMade(WebhookLine):
    secret: str


class NewAccount(Taken):
    name: Name
    role: Literal["requester", "operator"]


class Invited(StaffAccount):
    one_time_password: str


class AccountLine(StaffAccount):
    disabled: bool
    enrolled: bool
    joined: str


class ChangeAccount(Taken):
    disabled: bool


class ActLine(Given):
    index: int
    at: str
    actor: str
    verb: str
    subject: str
    previous: Hex64
    entry: Hex64


class AuditPage(Given):
    items: list[ActLine]
    next: int | None
    broken_at: int | None


class LedgerCheck(Given):
    holds: bool
    problems: list[str]


class GuardWarning(Given):
    requester: str
    sentence: str
    studies: list[Hex32]


class Warnings(Given):
    items: list[GuardWarning]


class PayoutLine(Given):
    id: Hex32
    day: str
    cents: int
    n_payees: int
