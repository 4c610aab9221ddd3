"""Domains: exact levels, codes there and back, and one sentence for everything that cannot be answered."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.domain import EMPTY, Choices, Scale, parse_options, parse_scale
from crowdveil.errors import DomainError

steps = st.sampled_from(["0.1", "0.25", "1", "3", "0.001"])


@given(low=st.integers(-100, 100), step=steps, size=st.integers(2, 50))
def test_levels_are_exact_and_codes_come_back(low: int, step: str, size: int) -> None:
    scale = Scale(low, low + (size - 1) * Decimal(step), step)
    assert scale.size == len(scale.symbols) == size
    codes = scale.encode([*scale.symbols, None])
    assert codes.tolist() == [*range(size), EMPTY]
    assert scale.decode(codes.tolist()) == [*scale.symbols, None]
    assert [Decimal(symbol) for symbol in scale.symbols] == [low + i * Decimal(step) for i in range(size)]
    assert np.allclose(np.diff(scale.numbers), float(step))


def test_a_level_may_be_spelled_in_several_ways() -> None:
    scale = Scale(0, 1, "0.1")
    assert {scale.code(value) for value in (0.3, "0.3", "0.30", " .3 ", Decimal("0.3"), "3e-1")} == {3}


def test_tenths_are_tenths() -> None:
    assert Scale(0, 1, 0.1).symbols == ("0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1")
    assert Scale("-0.5", "0.5", "0.5").symbols == ("-0.5", "0", "0.5")


@pytest.mark.parametrize("value", ["6", "1.5", "nan", "snan", "inf", "five", "", "1_0", "0x1", True])
def test_what_is_not_a_level_is_refused_in_one_sentence(value: object) -> None:
    with pytest.raises(DomainError, match="answer must be a level of 1:5:1; got "):
        Scale(1, 5).code(value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1:5:0", "step of a scale must be positive"),
        ("1:5:-1", "step of a scale must be positive"),
        ("5:1", "a scale must rise"),
        ("1:1", "a scale must rise"),
        ("0:1:0.3", "step of a scale must divide its range"),
        ("0:1000000", "at most 100001 levels"),
        ("a:b", "low of a scale must be a number"),
        ("0:inf", "high of a scale must be a number"),
        ("0:nan", "high of a scale must be a number"),
        ("5", "a scale must be LOW:HIGH"),
        ("1:2:3:4", "a scale must be LOW:HIGH"),
    ],
)
def test_a_scale_that_makes_no_sense_is_refused(text: str, problem: str) -> None:
    with pytest.raises(DomainError, match=problem):
        parse_scale(text)


@pytest.mark.parametrize(("text", "problem"), [("a,a", "options must differ"), ("a,,b", "not be blank"), ("", "blank")])
def test_options_that_make_no_sense_are_refused(text: str, problem: str) -> None:
    with pytest.raises(DomainError, match=problem):
        parse_options(text)


def test_options_keep_their_order_and_spelling() -> None:
    choices = parse_options("no, yes ,größer")
    assert choices.options == ("no", "yes", "größer")
    assert choices.decode([2, EMPTY]) == ["größer", None]
    with pytest.raises(DomainError, match=r"answer must be one of 'no', 'yes', 'größer'; got 'Yes'"):
        choices.code("Yes")


def test_options_are_numbers_only_when_all_are() -> None:
    assert Choices(("1", "2.5")).numbers.tolist() == [1.0, 2.5]
    for options in (("1", "b"), ("1", "nan"), ("1", "inf")):
        with pytest.raises(DomainError, match="needs numbers"):
            _ = Choices(options).numbers


def test_domains_compare_by_what_may_be_answered() -> None:
    assert Scale(1, 5) == Scale("1.0", 5.0, 1)
    assert hash(Scale(1, 5)) == hash(Scale("1", "5"))
    assert Choices(("a", "b")) != Choices(("b", "a"))
