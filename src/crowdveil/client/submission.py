"""One submission of a worker: its answers as codes, what it spends, and what left the device."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from crowdveil.accounting import Spend
from crowdveil.client.questions import code_of, shown
from crowdveil.client.study import Level, Study
from crowdveil.domain import EMPTY
from crowdveil.errors import CrowdveilError, InputError
from crowdveil.guarantee import round_up


@dataclass(frozen=True, slots=True)
class Sent:
    """What left the device, the broker's receipt for it, the level, and whether that level protects the answers."""

    reports: tuple[dict[str, Any], ...]
    receipt: dict[str, Any]
    level: str
    protected: bool


class MirrorError(CrowdveilError):
    """The broker's copy of the budget says that more ε was spent than this device knows of; nothing was counted yet."""

    def __init__(self, claimed: float, known: float) -> None:
        self.claimed, self.known = claimed, known
        super().__init__(
            f"the broker says that you have spent ε {round_up(claimed)}; this device knows of ε {round_up(known)}; if "
            "you answered on another device, or this one was set back, count it with catch_up (crowdveil answer "
            "catch-up); if not, the broker is wrong: dismiss it with dismiss_mirror (crowdveil answer catch-up "
            "--dismiss)"
        )


def encode_answers(study: Study, answers: dict[str, Any]) -> dict[str, int]:
    """Question → answer code for every report that will be drawn: all questions where participation is protected."""
    questions = study.questions
    unknown = set(answers) - {question["id"] for question in questions}
    if unknown:
        raise InputError(f"this study has no question {sorted(unknown)[0]!r}")
    given = shown(questions, answers)
    most = study.definition["max_answers"]
    if most is not None and len(given) > most:
        raise InputError(f"at most {most} questions of this study may be answered; got {len(given)}")
    codes = {question["id"]: code_of(question, given.get(question["id"])) for question in questions}
    if study.protects_participation:
        return codes
    answered = {question: code for question, code in codes.items() if code != EMPTY}
    if not answered:
        raise InputError("answer at least one question")
    return answered


def study_spends(study: Study, level: Level, codes: dict[str, int]) -> list[Spend]:
    """Every report that will be drawn, those through one channel together."""
    counted = Counter(level.channels[question] for question in codes)
    return [
        Spend.through(channel, name=str(study.definition["title"]), count=count) for channel, count in counted.items()
    ]


def cells_at_stake(study: Study, level: Level) -> int | None:
    """How many of the reports are charged, the dearest: 2t of them where at most t are answered."""
    return level.charge["reports"] if level.charge is not None and study.protects_participation else None
