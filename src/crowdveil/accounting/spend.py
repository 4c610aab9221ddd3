"""Spend: what was released, apart from how it is read. Meanings never change, and unknown kinds are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, cast

from crowdveil.accounting.events import (
    ChannelLaw,
    GaussianLaw,
    JointLaw,
    Law,
    PureLaw,
    TwoLayerLaw,
    Unprotected,
    law_of_channel,
)
from crowdveil.channel import Channel
from crowdveil.errors import InputError
from crowdveil.exact import times_up
from crowdveil.guarantee import Unit
from crowdveil.validation import Rule, check_settings

FORMAT = "crowdveil-spend/1"
_REPORTS = Rule("a whole number of reports, 1 or more and of at most 15 digits", lambda count: 1 <= count < 10**15)
_SPELLED = re.compile(r"[0-9]{1,400}([./][0-9]{1,400})?")


@dataclass(frozen=True, slots=True)
class Spend:
    """What a worker releases at once: `count` reports under one law; `name` is what the worker is shown.

    With participation protected, every question of a study reports, so `count` is their number (see `cells_at_stake`).

    >>> from crowdveil.channel.encoding import Rotate
    >>> channel = Channel(("no", "yes"), ("no", "yes"), 32, "rotate", Rotate(3 * 2**30, 2**30))
    >>> spend = Spend.through(channel, name="health", count=2)
    >>> spend == Spend.from_json(spend.to_json())
    True
    """

    law: Law
    name: str
    count: Annotated[int, _REPORTS] = 1

    def __post_init__(self) -> None:
        check_settings(self)

    @classmethod
    def through(cls, channel: Channel, *, name: str, count: int = 1) -> Spend:
        """`count` reports drawn through the channel; the identity channel gives an unprotected spend."""
        return cls(law_of_channel(channel), name, count)

    @property
    def kind(self) -> str:
        return self.law.kind

    @property
    def protected(self) -> bool:
        return not isinstance(self.law, Unprotected)

    @property
    def epsilon(self) -> float:
        """What all the reports cost by basic composition."""
        return times_up(self.count, self.law.epsilon)

    @property
    def rho(self) -> float:
        return times_up(self.count, self.law.rho)

    def to_json(self) -> dict[str, Any]:
        head = {"format": FORMAT, "kind": self.kind, "name": self.name, "count": self.count}
        return head | self.law.to_json()

    @classmethod
    def from_json(cls, data: object) -> Spend:
        """Read a spend back. A kind this version does not know is refused: guessing would miscount privacy."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise InputError(f"a spend must have the format {FORMAT!r}", fix="update crowdveil")
        kind = data.get("kind")
        if kind not in _READERS:
            raise InputError(f"a spend must be of kind {', '.join(_READERS)}; got {kind!r}", fix="update crowdveil")
        # Nothing stands for a missing count: read as one, a hundred reports would be told as one.
        return cls(_READERS[kind](data), str(data.get("name", "")), data.get("count"))  # type: ignore[arg-type]


def cells_at_stake(n_questions: int, *, at_most: int | None = None) -> int:
    """How many reports of a study that protects participation may differ between two workers.

    All of them; or 2·t where the device enforces a public bound of t answers, because two vectors of at most t answers
    differ in at most 2·t cells.

    >>> cells_at_stake(40), cells_at_stake(40, at_most=5)
    (40, 10)
    """
    if at_most is not None and not _is_count(at_most):
        raise InputError(f"the bound on answers must be a whole number, 1 or more; got {at_most!r}")
    return n_questions if at_most is None else min(n_questions, 2 * at_most)


def _is_count(count: object) -> bool:
    return isinstance(count, int) and not isinstance(count, bool) and count >= 1


def _flags(fields: dict[str, Any]) -> tuple[Unit, bool]:
    unit, protects = fields.get("unit"), fields.get("protects_participation")
    if unit not in ("value", "cell", "vector") or not isinstance(protects, bool):
        raise InputError(f"a spend must name the unit value, cell or vector; got {unit!r}")
    return cast(Unit, unit), protects


def _two_layer(fields: dict[str, Any]) -> Law:
    n_options = fields.get("n_options")
    if not _is_count(n_options):
        raise InputError(f"a two-layer spend needs n_options, a whole number; got {n_options!r}")
    return TwoLayerLaw(_fraction(fields, "low"), _fraction(fields, "high"), cast(int, n_options))


def _number(fields: dict[str, Any], name: str) -> float:
    """A float that was spelled as text."""
    try:
        return float(fields[name])
    except (KeyError, TypeError, ValueError):
        raise InputError(f"a spend needs the number {name!r}; got {fields.get(name)!r}") from None


def _fraction(fields: dict[str, Any], name: str) -> Fraction:
    """A fraction as it is spelled; exponents are refused, since a few of their digits fill a computer's memory."""
    text = fields.get(name)
    if not isinstance(text, str) or not _SPELLED.fullmatch(text):
        raise InputError(f"a two-layer spend needs the fraction {name!r}, such as 1/3; got {text!r}")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise InputError(f"a two-layer spend needs the fraction {name!r}, such as 1/3; got {text!r}") from None


_READERS: dict[str, Callable[[dict[str, Any]], Law]] = {
    ChannelLaw.kind: lambda fields: law_of_channel(Channel.from_json(fields.get("channel"))),
    PureLaw.kind: lambda fields: PureLaw(_number(fields, "epsilon"), *_flags(fields)),
    JointLaw.kind: lambda fields: JointLaw(_number(fields, "epsilon"), *_flags(fields)),
    GaussianLaw.kind: lambda fields: GaussianLaw(_number(fields, "mu"), *_flags(fields)),
    TwoLayerLaw.kind: _two_layer,
    Unprotected.kind: lambda fields: Unprotected(),
}
