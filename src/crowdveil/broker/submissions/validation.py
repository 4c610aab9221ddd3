"""Checking reports against the definition, and packing them into one cell."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from crowdveil.broker.ledger.budget import MirrorCharge
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.definition import Definition, DefinitionLevel

NO_REPORT = 65535


class Report(Protocol):
    """One report as it comes in."""

    question: str
    channel: str
    report: int


@dataclass(frozen=True, slots=True)
class ValidatedReports:
    """Reports that fit the definition, with what they charge and pay."""

    codes: bytes
    n_reports: int
    n_charged: int
    charge: MirrorCharge
    pay_cents: int


def check(opened: Definition, level: DefinitionLevel, reports: Sequence[Report]) -> ValidatedReports:
    """Refuse whole whatever does not fit: nothing is stored and nothing charged."""
    codes = [NO_REPORT] * len(opened.questions)
    for report in reports:
        _place(opened, level, report, codes)
    reported = [index for index, code in enumerate(codes) if code != NO_REPORT]
    _check_complete(opened, reported)
    return ValidatedReports(
        _pack_codes(codes),
        len(reported),
        _n_charged(opened, level, reported),
        _charge(opened, level, reported),
        _pay(opened, level, len(reported)),
    )


def _place(opened: Definition, level: DefinitionLevel, report: Report, codes: list[int]) -> None:
    index = opened.position.get(report.question)
    if index is None:
        raise Refusal("invalid", f"this study has no question {report.question!r}", question=report.question)
    if codes[index] != NO_REPORT:
        raise Refusal("invalid", f"question {report.question} has two reports; send one", question=report.question)
    if report.channel != level.channels[index]:
        raise Refusal(
            "wrong-channel",
            f"the report on {report.question} came through another channel than level {level.name} has there",
            question=report.question,
        )
    if not 0 <= report.report < level.n_outputs[index]:
        raise Refusal(
            "report-out-of-range",
            f"a report on {report.question} must be from 0 to {level.n_outputs[index] - 1}",
            question=report.question,
        )
    codes[index] = report.report


def _check_complete(opened: Definition, given: list[int]) -> None:
    if not given:
        raise Refusal("missing-report", "a submission needs at least one report")
    if opened.protects_participation and len(given) < len(opened.questions):
        missing = next(question for index, question in enumerate(opened.questions) if index not in given)
        raise Refusal(
            "missing-report",
            "this study hides which questions were answered, so every question needs exactly one report, "
            f"skipped ones included; {missing} has none",
            question=missing,
        )


def _charge(opened: Definition, level: DefinitionLevel, given: list[int]) -> MirrorCharge:
    if level.charge is None:
        return MirrorCharge(unprotected=True)
    if opened.protects_participation:
        return MirrorCharge(level.charge["epsilon_nano"], level.charge["rho_nano"])
    return MirrorCharge(sum(level.epsilon[index] for index in given), sum(level.rho[index] for index in given))


def _n_charged(opened: Definition, level: DefinitionLevel, given: list[int]) -> int:
    """As the definition counts: with a bound on the answers fewer reports are charged than come in."""
    return level.charge["reports"] if level.charge is not None and opened.protects_participation else len(given)


def _pay(opened: Definition, level: DefinitionLevel, n_reports: int) -> int:
    if not opened.document["partial_pay"]:
        return level.pay_cents
    return level.pay_cents * n_reports // len(opened.questions)


def _pack_codes(codes: list[int]) -> bytes:
    packed = array("H", codes)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()
