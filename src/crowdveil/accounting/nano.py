"""Privacy in integers: nano-units, charges rounded up and caps rounded down, so that no rounding helps to overspend.

An infinite or absurdly large charge saturates at 2^52: two saturated numbers still add exactly in SQL and JavaScript.
"""

from __future__ import annotations

import math
from fractions import Fraction

NANO = 10**9
SATURATED = 2**52


def nano_up(amount: float) -> int:
    """A charge: never below the amount.

    >>> nano_up(0.25), nano_up(1 / 3), nano_up(math.inf) == SATURATED
    (250000000, 333333334, True)
    """
    return SATURATED if math.isinf(amount) else min(math.ceil(Fraction(amount) * NANO), SATURATED)


def nano_down(amount: float) -> int:
    """A cap: never above the amount, and never saturated.

    >>> nano_down(1 / 3)
    333333333
    """
    return SATURATED - 1 if math.isinf(amount) else min(math.floor(Fraction(amount) * NANO), SATURATED - 1)


def add(first: int, second: int) -> int:
    """A sum that stays saturated."""
    return min(first + second, SATURATED)


def from_nano(nano: int) -> float:
    """Nano-units as a number; saturated is infinite."""
    return math.inf if nano >= SATURATED else nano / NANO
