"""Logarithms and exponentials that are rounded in the direction that never understates a privacy loss."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

_UP = Context(prec=60, rounding=ROUND_CEILING)
_DOWN = Context(prec=60, rounding=ROUND_FLOOR)


def log_up(ratio: Fraction) -> float:
    """The smallest double that is certainly not below ln(ratio)."""
    if ratio == 1:
        return 0.0
    quotient = _UP.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    # Decimal.ln is correctly rounded (half-even) whatever the context says; one unit in the last place covers it.
    return _double_up(_UP.next_plus(_UP.ln(quotient)))


def exp_down(exponent: float) -> Fraction:
    """A fraction certainly not above e^exponent (the double is taken at its exact value)."""
    return Fraction(_DOWN.next_minus(_DOWN.exp(Decimal(exponent))))


def exp_up(exponent: float) -> Fraction:
    """A fraction certainly not below e^exponent."""
    return Fraction(_UP.next_plus(_UP.exp(Decimal(exponent))))


def _double_up(value: Decimal) -> float:
    nearest = float(value)
    return nearest if Decimal(nearest) >= value else math.nextafter(nearest, math.inf)


def fraction_up(amount: Fraction) -> float:
    """The smallest double that is not below the amount."""
    nearest = float(amount)
    return nearest if Fraction(nearest) >= amount else math.nextafter(nearest, math.inf)


def times_up(count: int, amount: float) -> float:
    """`count` times the amount, rounded up: a product of doubles is as often below as above.

    >>> 470 * 0.0019433076194217325 < times_up(470, 0.0019433076194217325)
    True
    """
    return amount if math.isinf(amount) else fraction_up(count * Fraction(amount))


def decimal_text(value: Decimal) -> str:
    """The one canonical spelling of an exact decimal: no exponent, no trailing zeros, no negative zero."""
    text = f"{value.normalize():f}"
    return "0" if text in ("-0", "0") else text


def json_number(value: float) -> float | str:
    """JSON has no infinity: the string "inf" stands for it."""
    return "inf" if math.isinf(value) else value
