"""Checking reports against the definition, and packing them into one cell."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from crowdveil.broker.ledger.budget import MirrorCharge
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.definition import Opened, OpenedLevel

NO_REPORT = 65535


class Report(Protocol):
    """One report as it comes in."""

    question: str
    channel: str
    report: int


@dataclass(frozen=True, slots=True)
class Checked:
    """Reports that fit the definition, with what they charge and pay."""

    codes: bytes
    n_reports: int
    n_charged: int
    charge: MirrorCharge
    pay_cents: int


def check(opened: Opened, level: OpenedLevel, reports: Sequence[Report]) -> Checked:
    """Refuse whole whatever does not fit: nothing is stored and nothing charged."""
    codes = [NO_REPORT] * len(opened.questions)
    for report in reports:
        _place(opened, level, report, codes)
    given = [place for place, code in enumerate(codes) if code != NO_REPORT]
    _check_complete(opened, given)
    return Checked(
        _packed(codes),
        len(given),
        _n_charged(opened, level, given),
        _charge(opened, level, given),
        _pay(opened, level, len(given)),
    )


def _place(opened: Opened, level: OpenedLevel, report: Report, codes: list[int]) -> None:
    place = opened.position.get(report.question)
    if place is None:
        raise Refusal("invalid", f"this study has no question {report.question!r}", question=report.question)
    if codes[place] != NO_REPORT:
        raise Refusal("invalid", f"question {report.question} has two reports; send one", question=report.question)
    if report.channel != level.channels[place]:
        raise Refusal(
            "wrong-channel",
            f"the report on {report.question} came through another channel than level {level.name} has there",
            question=report.question,
        )
    if not 0 <= report.report < level.n_outputs[place]:
        raise Refusal(
            "report-out-of-range",
            f"a report on {report.question} must be from 0 to {level.n_outputs[place] - 1}",
            question=report.question,
        )
    codes[place] = report.report


def _check_complete(opened: Opened, given: list[int]) -> None:
    if not given:
        raise Refusal("missing-report", "a submission needs at least one report")
    if opened.protects_participation and len(given) < len(opened.questions):
        missing = next(question for place, question in enumerate(opened.questions) if place not in given)
        raise Refusal(
            "missing-report",
            "this study hides which questions were answered, so every question needs exactly one report, "
            f"skipped ones included; {missing} has none",
            question=missing,
        )


def _charge(opened: Opened, level: OpenedLevel, given: list[int]) -> MirrorCharge:
    if level.charge is None:
        return MirrorCharge(unprotected=True)
    if opened.protects_participation:
        return MirrorCharge(level.charge["epsilon_nano"], level.charge["rho_nano"])
    return MirrorCharge(sum(level.epsilon[place] for place in given), sum(level.rho[place] for place in given))


def _n_charged(opened: Opened, level: OpenedLevel, given: list[int]) -> int:
    """As the definition counts: with a bound on the answers fewer reports are charged than come in."""
    return level.charge["reports"] if level.charge is not None and opened.protects_participation else len(given)


def _pay(opened: Opened, level: OpenedLevel, n_reports: int) -> int:
    if not opened.document["partial_pay"]:
        return level.pay_cents
    return level.pay_cents * n_reports // len(opened.questions)


def _packed(codes: list[int]) -> bytes:
    packed = array("H", codes)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()
