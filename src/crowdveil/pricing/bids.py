"""What workers ask for, and what an auction buys from whom, in exact fractions: a rounded cent can break a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Rational

from crowdveil.errors import InputError

MAX_EXPONENT = 30
Amount = int | float | str | Fraction


def parse_amount(value: Amount, name: str, *, positive: bool = False) -> Fraction:
    """The exact number; a float is read as it is printed, so 0.1 is a tenth."""
    amount = Fraction(value) if isinstance(value, Rational) else _parse_decimal(str(value))
    if amount < 0 or (positive and amount == 0):
        words = "a number above 0" if positive else "a number from 0 up"
        raise InputError(f"{name} must be {words}; got {value!r}", field=name)
    return amount


def _parse_decimal(text: str) -> Fraction:
    """The number; -1 where it is none, infinite, or so large or small that its power of ten would fill memory."""
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return Fraction(-1)
    return Fraction(number) if number.is_finite() and abs(number.adjusted()) <= MAX_EXPONENT else Fraction(-1)


@dataclass(frozen=True, slots=True)
class Bid:
    """A worker's bid.

    `cost` is what the worker asks for: per unit of ε, or, where `epsilon` is given, for a report at that ε.
    """

    worker: str
    cost: Fraction
    epsilon: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Purchase:
    """Who sells how much privacy for which payment; `error` is what the paper promises of a count, if it does."""

    mechanism: str
    winners: tuple[str, ...]
    epsilon: tuple[Fraction, ...]
    payments: tuple[Fraction, ...]
    error: float | None = None

    @property
    def total(self) -> Fraction:
        return sum(self.payments, Fraction(0))

    def to_json(self) -> dict[str, object]:
        return {
            "mechanism": self.mechanism,
            "winners": [
                {"worker": worker, "epsilon": round(float(epsilon), 9), "payment": round(float(payment), 9)}
                for worker, epsilon, payment in zip(self.winners, self.epsilon, self.payments, strict=True)
            ],
            "total": round(float(self.total), 9),
            "error": self.error,
        }


def check_bids(bids: Sequence[Bid], at_least: int = 2) -> None:
    if len(bids) < at_least:
        raise InputError(f"an auction needs at least {at_least} bids; got {len(bids)}", fix="ask more workers for bids")
    if len({bid.worker for bid in bids}) != len(bids):
        raise InputError("every worker must bid once; got one twice", fix="remove one of them", field="worker")


def sort_bids(bids: Sequence[Bid]) -> list[Bid]:
    """The lowest first; of equal bids the one that was listed first."""
    return sorted(bids, key=lambda bid: bid.cost)
