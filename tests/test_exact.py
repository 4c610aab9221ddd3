"""Logarithms and exponentials err only in the direction that never understates a loss."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.errors import InputError
from crowdveil.exact import decimal_text, exp_down, exp_up, json_number, log_up
from crowdveil.guarantee import Guarantee, positive_epsilon, round_up

PRECISE = Context(prec=120)


def precise_log(ratio: Fraction) -> Decimal:
    return PRECISE.ln(PRECISE.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))


@given(st.integers(1, 2**64), st.integers(1, 2**64))
def test_the_logarithm_is_the_next_double_upwards(a: int, b: int) -> None:
    ratio = Fraction(max(a, b), min(a, b))
    rounded, exact = log_up(ratio), precise_log(ratio)
    assert Decimal(rounded) >= exact
    assert rounded == 0 or Decimal(math.nextafter(rounded, -1)) < exact


@given(st.floats(1e-6, 40))
def test_exponentials_enclose_the_truth(x: float) -> None:
    exact = Fraction(PRECISE.exp(Decimal(x)))
    assert exp_down(x) <= exact <= exp_up(x)
    assert exp_up(x) - exp_down(x) < exact / 10**50


@pytest.mark.parametrize(
    ("text", "spelled"), [("1.50", "1.5"), ("1E+3", "1000"), ("-0", "0"), ("-0.00", "0"), ("0.000001", "0.000001")]
)
def test_decimals_have_one_spelling(text: str, spelled: str) -> None:
    assert decimal_text(Decimal(text)) == spelled


def test_json_has_no_infinity() -> None:
    assert json_number(math.inf) == "inf"
    assert json_number(1.5) == 1.5


@given(st.floats(1e-9, 50))
def test_a_printed_epsilon_is_never_below_the_real_one(epsilon: float) -> None:
    assert Decimal(round_up(epsilon)) >= Decimal(epsilon) - Decimal("1e-15")


def test_guarantees_print_their_unit() -> None:
    promise = Guarantee("cell", 1.00001, 0.3, protects_participation=True)
    assert str(promise) == "ε ≤ 1.0001 per cell (one question, answered or not)"
    assert "δ = 0.01" in str(Guarantee("vector", 1, 1, 0.01))
    assert round_up(math.inf) == "∞"


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan])
def test_a_requested_epsilon_is_positive_and_finite(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon must be a positive finite number; got "):
        positive_epsilon(epsilon)


def test_a_loss_is_never_shown_as_none_and_a_huge_one_is_shown() -> None:
    assert round_up(1e-300) == "0.0001"
    assert round_up(0.1 + 0.2) == "0.3"
    assert int(round_up(1e300)) >= int(1e300)
    with pytest.raises(InputError, match="positive finite"):
        positive_epsilon(10**400)
