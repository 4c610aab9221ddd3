"""`crowdveil mechanisms` keeps its JSON contract for every mechanism, and its ε can be recomputed by anyone."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from cli.run import crowdveil, crowdveil_json

from crowdveil.mechanisms import MECHANISMS


def test_all_are_listed() -> None:
    listed = crowdveil_json("mechanisms")["mechanisms"]
    assert {row["name"] for row in listed} == set(MECHANISMS)


@pytest.mark.parametrize("name", MECHANISMS)
def test_one_is_described(name: str) -> None:
    described = crowdveil_json("mechanisms", name)
    assert described["name"] == name
    assert described["research_only"] is MECHANISMS[name].research_only
    assert {"unit", "epsilon", "delta", "rho", "protects_participation", "requested_epsilon"} <= set(
        described["guarantee"]
    )
    if name == "none":
        assert described["guarantee"]["epsilon"] == "inf"
    elif not described["research_only"]:
        assert described["guarantee"]["epsilon"] <= 1


def test_epsilon_is_recomputed_from_the_printed_weights() -> None:
    described = crowdveil_json("mechanisms", "randomized-response", "--epsilon", 1, "--options", "a,b,c")
    rows = [[int(weight) for weight in row] for row in described["channel"]["weights"]]
    ratio = max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))
    assert math.log(ratio) <= described["guarantee"]["epsilon"] <= 1
    assert math.log(ratio) > 1 - 1e-6


def test_an_unknown_one_is_refused_with_the_list() -> None:
    done = crowdveil("mechanisms", "magic")
    assert done.returncode == 2
    assert "randomized-response" in done.stderr
