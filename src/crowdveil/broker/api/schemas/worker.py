"""What workers send and get about themselves."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from crowdveil.broker.api.schemas.common import Budget, Given, Hex32, Taken
from crowdveil.broker.studies.draft import LevelName

Cap = Annotated[int, Field(ge=0, le=100_000_000_000)]
Label = Annotated[str, StringConstraints(max_length=80, pattern=r"^[^\x00-\x1f\x7f]*$")]


class SignUp(Taken):
    default_level: LevelName = "medium"
    epsilon_cap_nano: Cap | None = None


class ChangeSelf(Taken):
    default_level: LevelName | None = None
    epsilon_cap_nano: Cap | None = None


class Self(Given):
    id: Hex32
    default_level: LevelName
    budget: Budget
    joined: str


class SignedUp(Given):
    id: Hex32
    token: str
    expires: str
    default_level: LevelName
    budget: Budget


class SpendLine(Given):
    """One release; an unprotected one has nothing to sum."""

    study: Hex32
    title: str
    level: LevelName
    protected: bool
    epsilon_nano: int | None
    rho_nano: int | None
    day: str


class OneByOneLine(Given):
    """Answers to a pool that are protected one by one: each at most at `epsilon_nano`, listed beside the sums."""

    study: Hex32
    level: LevelName
    epsilon_nano: int
    count: int


class Earned(Given):
    period: str
    cents: int


class PaidOut(Given):
    day: str
    cents: int


class Statement(Given):
    payee: Hex32
    earned: list[Earned]
    paid_out: list[PaidOut]
    balance_cents: int


class NewToken(Taken):
    label: Label = ""


class TokenLine(Given):
    id: Hex32
    label: str
    expires: str


class TokenList(Given):
    items: list[TokenLine]


class IssuedToken(Given):
    """The token's text is shown this once."""

    id: Hex32
    token: str
    expires: str


class Everything(Given):
    """All that the broker holds about one worker. Reports are not among it: they carry no name."""

    account: dict[str, Any]
    budget: Budget
    ledger: list[SpendLine]
    one_by_one: list[OneByOneLine]
    consents: list[dict[str, Any]]
    reservations: list[dict[str, Any]]
    payments: Statement
    tokens: list[TokenLine]
