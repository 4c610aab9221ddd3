"""The demonstration's crowd: patient with a broker that asks to wait, and only with that."""

from __future__ import annotations

import pytest

from crowdveil.client import ProblemError
from crowdveil.client.demo import answers_of_somebody, patiently

WAIT = {"type": "/problems/rate-limited", "fields": {"retry_after_seconds": 0.01}}


def test_it_waits_as_long_as_it_is_told_and_tries_again() -> None:
    calls: list[int] = []

    def act() -> None:
        calls.append(1)
        if len(calls) < 4:
            raise ProblemError(429, WAIT)

    patiently(act)
    assert len(calls) == 4


def test_it_gives_up_on_anything_else() -> None:
    def act() -> None:
        raise ProblemError(409, {"detail": "no money"})

    with pytest.raises(ProblemError, match="no money"):
        patiently(act)


def test_its_answers_fit_the_demo_study() -> None:
    for _ in range(200):
        given = answers_of_somebody()
        assert given == {} or given["worked_ill"] in ("no", "yes")
        assert set(given.get("reasons", [])) <= {"money", "deadline"}
