"""Faulty mechanisms of every sort we could think of: the audit refutes them or says "unknown", never "holds"."""

from __future__ import annotations

import math
import random
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

from crowdveil import Answers, Choices, Reports
from crowdveil.audit import Finding, audit_callable, audit_mechanism
from crowdveil.entropy import Entropy, Keystream
from crowdveil.mechanisms import RandomizedResponse, mechanism

NO_YES = Choices(("no", "yes"))
SAMPLES = 3000
chance = random.Random(20261116)


def honest(answer: str, keep: float = 0.7) -> str:
    return answer if chance.random() < keep else {"no": "yes", "yes": "no"}[answer]


def minus_zero(answer: str) -> float:
    return -0.0 if answer == "yes" else 0.0


def not_a_number(answer: str) -> float:
    payload: float = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000000 + (answer == "yes")))[0]
    return payload


def minus_zero_in_a_vector(answer: str) -> list[float]:
    return [chance.random(), minus_zero(answer)]


def reseeded(answer: str) -> str:
    return answer if random.Random(7).random() < 0.7 else "no"


def order(answer: str) -> list[str]:
    return ["no", "yes"] if honest(answer, 0.95) == "no" else ["yes", "no"]


def every_third_is_true(answer: str, calls: list[int] = [0]) -> str:  # noqa: B006
    calls[0] += 1
    return answer if calls[0] % 3 == 0 else honest(answer)


def length(answer: str) -> tuple[int, ...]:
    return (1,) * (1 + (honest(answer, 0.95) == "yes"))


def rare_word(answer: str) -> Any:
    return "!" if answer == "yes" and chance.random() < 0.05 else 1


REFUTED = [
    minus_zero,
    not_a_number,
    minus_zero_in_a_vector,
    reseeded,
    order,
    every_third_is_true,
    length,
    rare_word,
]


def audited(called: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, samples: int = SAMPLES) -> Finding:
    module = ModuleType("of_somebody")
    module.report = called
    monkeypatch.setitem(sys.modules, "of_somebody", module)
    return audit_callable("of_somebody:report", NO_YES, claimed=1, participation=False, samples=samples)


@pytest.mark.parametrize("called", REFUTED, ids=lambda each: each.__name__)
def test_faulty_code_is_refuted(called: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert audited(called, monkeypatch).verdict == "exceeds"


@pytest.mark.parametrize("rarely", ["n/a", (1, 2), None, math.nan, 10**30], ids=repr)
def test_a_rare_report_of_another_kind_neither_accuses_nor_fails(
    rarely: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In some batches it turns up and in others not; the reports beside it must be read alike in all of them."""

    def mixed(answer: str) -> Any:
        return rarely if chance.random() < 1 / 2000 else np.int64(honest(answer, 0.6) == "yes")

    for _ in range(4):
        row = audited(mixed, monkeypatch)
        assert (row.verdict, row.lower_bound is not None) == ("unknown", True)


def test_code_that_remembers_its_draws_is_pointed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    row = audited(lambda answer: "no", monkeypatch)
    assert row.verdict == "unknown"
    assert "for 2 of 2 answers no report ever varied" in row.note
    assert "varied" not in audited(honest, monkeypatch).note


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaky(RandomizedResponse):
    """The table is right; what is drawn is not, now and then."""

    name: ClassVar[str] = "leaky"

    def randomize(self, answers: Answers, entropy: Entropy) -> Reports:
        reports = RandomizedResponse.randomize(self, answers, entropy)
        told = np.where(reports.worker == 999_999, answers.answer[:1], reports.report)
        return replace(reports, report=told.astype(np.int32))


MEMORY: dict[int, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembering(RandomizedResponse):
    """What was drawn once for a worker is told again, whatever is answered."""

    name: ClassVar[str] = "remembering"

    def randomize(self, answers: Answers, entropy: Entropy) -> Reports:
        reports = RandomizedResponse.randomize(self, answers, entropy)
        pairs = zip(reports.worker.tolist(), reports.report.tolist(), strict=True)
        return replace(reports, report=np.array([MEMORY.setdefault(*pair) for pair in pairs], dtype=np.int32))


@pytest.mark.parametrize(
    ("kind", "verdict"), [(RandomizedResponse, "holds"), (Leaky, "unknown"), (Remembering, "exceeds")]
)
def test_a_table_proves_nothing_about_other_code(kind: type[RandomizedResponse], verdict: str) -> None:
    row = audit_mechanism(kind(epsilon=1), NO_YES, claimed=1, participation=False, entropy=Keystream(1))
    assert row.verdict == verdict


def test_two_layer_holds_only_where_no_number_of_answers_breaks_it() -> None:
    subject = mechanism("two-layer", low=0.25, high=0.5)
    claims = {0.9: "exceeds", 1.09: "unknown", 1.0987: "holds"}
    rows = {
        claim: audit_mechanism(subject, NO_YES, claimed=claim, participation=False, entropy=Keystream(1))
        for claim in claims
    }
    assert {claim: row.verdict for claim, row in rows.items()} == claims
