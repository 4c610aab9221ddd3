"""Studies in the broker's wire form, built from the library: what the device's tests answer."""

from __future__ import annotations

import copy
import json
from itertools import compress, product
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from crowdveil import Choices, Scale, identity
from crowdveil.accounting.nano import nano_up
from crowdveil.canonical_json import canonical, sha256_hex
from crowdveil.channel import Channel
from crowdveil.domain import Domain
from crowdveil.mechanisms import mechanism

ZEROS = "0" * 64
_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC_KEY = _KEY.public_key().public_bytes_raw().hex()
PAY = {"none": 80, "low": 40, "medium": 20, "high": 10}
EPSILON = {"low": 2.0, "medium": 1.0, "high": 0.5}

QUESTIONS: list[dict[str, Any]] = [
    {
        "id": "smoked",
        "text": "Have you smoked in the last month?",
        "domain": {"type": "choices", "options": ["no", "yes"]},
    },
    {
        "id": "often",
        "text": "How often do you feel under pressure at work?",
        "domain": {"type": "scale", "low": "1", "high": "5", "step": "1"},
    },
    {
        "id": "where",
        "text": "Where do you smoke?",
        "domain": {"type": "tick-all", "boxes": ["at home", "at work", "outside"]},
        "show_if": {"question": "smoked", "any_of": ["yes"]},
    },
]


def domain_of(spelled: dict[str, Any]) -> Domain:
    if spelled["type"] == "choices":
        return Choices(tuple(spelled["options"]))
    if spelled["type"] == "scale":
        return Scale(spelled["low"], spelled["high"], spelled["step"])
    boxes = spelled["boxes"]
    # Ordered by bit mask, box 0 being the lowest bit.
    masks = [mask[::-1] for mask in product((0, 1), repeat=len(boxes))]
    return Choices(tuple(json.dumps(list(compress(boxes, mask)), separators=(",", ":")) for mask in masks))


def channel_of(level: str, domain: Domain, protects: bool) -> Channel:
    if level == "none":
        return identity(domain)
    built = mechanism("randomized-response", epsilon=EPSILON[level], protect_participation=protects)
    return built.channel(domain)


def definition(
    identifier: str = "a" * 32,
    *,
    protects: bool = True,
    levels: tuple[str, ...] = ("low", "medium", "high"),
    max_answers: int | None = None,
    title: str = "Smoking and work",
) -> dict[str, Any]:
    """A whole study of three questions, one of them shown only to those who smoke."""
    # Where participation is visible, skip logic would tell answers, and no device would answer.
    questions = [
        question | {"identifying": [], "show_if": question.get("show_if") if protects else None}
        for question in QUESTIONS
    ]
    tables: dict[str, Any] = {}
    spelled = []
    for level in levels:
        channels = {
            question["id"]: channel_of(level, domain_of(question["domain"]), protects) for question in questions
        }
        tables |= {channel.sha256: channel.to_json() for channel in channels.values()}
        spelled.append(_level(level, channels, protects, max_answers))
    return {
        "format": "crowdveil-study/1",
        "id": identifier,
        "title": title,
        "purpose": "Find out how common smoking is among people under pressure.",
        "requester": "Public health lab",
        "goal": "population",
        "consent": {"version": 1, "text": "I take part freely and may take my reports back at any time."},
        "protects_participation": protects,
        "max_answers": max_answers,
        "linkable": False,
        "partial_pay": False,
        "selection": {"policy": "first-come"},
        "minimum_n": 20,
        "quota": 500,
        "reservation_minutes": 60,
        "opened": "2026-11-15",
        "gold_commitment": None,
        "questions": questions,
        "levels": spelled,
        "channels": tables,
    }


def _level(name: str, channels: dict[str, Channel], protects: bool, max_answers: int | None) -> dict[str, Any]:
    at_stake = 2 * max_answers if protects and max_answers is not None else len(channels)
    guarantees = [channel.guarantee for channel in channels.values()]
    costs = [
        sorted(map(nano_up, each))[::-1][:at_stake]
        for each in zip(*((g.epsilon, g.rho) for g in guarantees), strict=True)
    ]
    charge = {"epsilon_nano": sum(costs[0]), "rho_nano": sum(costs[1]), "reports": len(channels)}
    return {
        "name": name,
        "mechanism": "none" if name == "none" else "randomized-response",
        "protected": name != "none",
        "pay_cents": PAY[name],
        "charge": None if name == "none" else charge,
        "channels": {question: channel.sha256 for question, channel in channels.items()},
    }


def log_entry(study: dict[str, Any], *, index: int = 1, previous: str = ZEROS) -> dict[str, Any]:
    content = {
        "index": index,
        "study": study["id"],
        "sha256": sha256_hex(study),
        "day": "2026-11-15",
        "previous": previous,
    }
    return content | {"entry": sha256_hex(content)}


def sign(value: object) -> str:
    return _KEY.sign(canonical(value)).hex()


def served(study: dict[str, Any], entry: dict[str, Any] | None = None) -> dict[str, Any]:
    """What `GET /studies/{id}` answers."""
    return {
        "definition": study,
        "sha256": sha256_hex(study),
        "signature": sign(study),
        "public_key": PUBLIC_KEY,
        "log": entry or log_entry(study),
        "state": "open",
        "warnings": [],
        "places": True,
    }


def card(study: dict[str, Any]) -> dict[str, Any]:
    """What a list of studies shows."""
    levels = [{key: value for key, value in level.items() if key != "channels"} for level in study["levels"]]
    names = ("id", "title", "purpose", "requester", "linkable", "protects_participation")
    return {name: study[name] for name in names} | {
        "state": "open",
        "sha256": sha256_hex(study),
        "n_questions": len(study["questions"]),
        "selection": "first-come",
        "levels": levels,
        "warnings": [],
        "places": True,
    }


def rename(levels: list[dict[str, Any]]) -> None:
    """What is called high hides least."""
    levels.reverse()
    for level, name in zip(levels, ("low", "medium", "high"), strict=True):
        level["name"] = name


# Each at its place in an honest study, and none of its kind: some languages would read it as something.
MISTYPED: list[tuple[str, object]] = [
    *(("protects_participation", value) for value in (1, 0, "no", None)),
    *((name, value) for name in ("linkable", "partial_pay") for value in (0, "", None)),
    *(("max_answers", value) for value in ("1", True, 0, -1, [1])),
    ("title", 7),
    ("purpose", None),
    ("requester", ["lab"]),
    ("consent", "I agree"),
    *(("consent.version", value) for value in ("1", True)),
    ("consent.text", None),
    ("questions", {}),
    *(("questions.0.id", value) for value in (7, ["smoked"])),
    ("questions.0.text", None),
    *(("questions.0.show_if", value) for value in (False, 0, "")),
    ("questions.2.show_if.any_of", "yes, or yesterday"),
    ("questions.2.show_if.question", ["smoked"]),
    ("questions.0.domain", "choices"),
    ("questions.0.domain.options", "ny"),
    ("questions.0.domain.options", [0, 1]),
    *((f"questions.1.domain.{name}", 1) for name in ("low", "high", "step")),
    ("questions.2.domain.boxes", "abc"),
    ("questions.2.domain.boxes", [str(box) for box in range(7)]),
    ("levels", {}),
    *(("levels.0.name", value) for value in (["low"], None)),
    *(("levels.0.protected", value) for value in (1, "true")),
    *(("levels.0.pay_cents", value) for value in ("20", True, -1)),
    *(("levels.0.charge", value) for value in (9, [])),
    *((f"levels.0.charge.{name}", "9000000000") for name in ("epsilon_nano", "rho_nano", "reports")),
    ("levels.0.channels", []),
    ("channels", []),
]


def mistyped() -> list[tuple[str, dict[str, Any]]]:
    """Signed and logged studies with one field of another kind, each with the name of that field."""
    return [(_field(place), served(_replaced(definition(), place.split("."), value))) for place, value in MISTYPED]


def _field(place: str) -> str:
    return ".".join(step for step in place.split(".") if not step.isdecimal())


def _replaced(study: dict[str, Any], place: list[str], value: object) -> dict[str, Any]:
    changed: Any = copy.deepcopy(study)
    part = changed
    for step in place[:-1]:
        part = part[int(step) if step.isdecimal() else step]
    part[place[-1]] = value
    return dict(changed)


def seemingly_hidden() -> dict[str, Any]:
    """Skipped questions send nothing; whoever takes 1 for true would say that they are hidden."""
    return served(definition(protects=False) | {"protects_participation": 1})


def tampered() -> list[tuple[str, dict[str, Any]]]:
    """Studies that a device must refuse to answer, each with the reason; whatever is not the reason fits."""
    honest = definition()
    cases: list[tuple[str, dict[str, Any], dict[str, Any] | None]] = []

    def changed(why: str, change: Any, entry: dict[str, Any] | None = None) -> None:
        study = copy.deepcopy(honest)
        change(study)
        cases.append((why, study, entry))

    low_channels = honest["levels"][0]["channels"]
    changed("study.log", lambda study: study.update(title="Another title"), log_entry(honest))
    changed("study.format", lambda study: study.update(format="crowdveil-study/2"))
    changed("study.charge", lambda study: study["levels"][1]["charge"].update(epsilon_nano=2_000_000_000))
    changed("study.charge", lambda study: study["levels"][1]["charge"].update(rho_nano=1_000))
    changed("study.charge", lambda study: study["levels"][1].update(channels=low_channels))
    changed("study.protection", lambda study: study["levels"][1].update(protected=False, charge=None))
    changed("study.channel", lambda study: study["levels"][0]["channels"].pop("often"))
    changed("study.channel", lambda study: study["questions"][0]["domain"].update(options=["yes", "no"]))
    changed("study.questions", lambda study: study["questions"].append(study["questions"][0]))
    changed("study.questions", lambda study: study["questions"].reverse())
    changed(
        "channel.hash",
        lambda study: study["channels"].update({low_channels["smoked"]: {"format": "crowdveil-channel/1"}}),
    )
    changed("channel.hash", lambda study: study["channels"][low_channels["smoked"]].update(bits=64))
    changed("study.level", lambda study: study["levels"][0].update(name="lowest"))
    changed("study.level", lambda study: study["levels"].append(study["levels"][0] | {"name": "high"}))
    changed("study.level", lambda study: study["levels"].reverse())
    changed("study.protection", lambda study: rename(study["levels"]))
    telling = definition(protects=False, levels=("none", "medium"))
    telling["questions"][2]["show_if"] = {"question": "smoked", "any_of": ["yes"]}
    cases.append(("study.skips", telling, None))
    renamed = definition(protects=False, levels=("none",))
    renamed["levels"][0]["name"] = "high"
    cases.append(("study.protection", renamed, None))
    bounded = definition(protects=False)
    bounded["max_answers"] = 1
    cases.append(("study.field", bounded, None))
    answers = [(why, served(study, entry)) for why, study, entry in cases]
    answers.append(("study.field", seemingly_hidden()))
    answers.append(("study.hash", served(honest) | {"sha256": ZEROS}))
    answers.append(("study.log", served(honest, log_entry(honest) | {"entry": ZEROS})))
    answers.append(("study.log", served(honest, log_entry(honest | {"id": "b" * 32}))))
    return answers
