"""The study editor: a form with any number of questions, and the draft it spells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from crowdveil.broker.refusal import Refusal
from crowdveil.broker.studies.draft import LEVELS, Draft

KINDS = ("choices", "scale", "tick-all")
_DEFAULTS = {"low": ("3", 50), "medium": ("1", 40), "high": ("0.5", 30), "none": ("", 60)}
MAX_QUESTIONS = 200


def blank() -> dict[str, Any]:
    """A new study: one question, three protected levels."""
    return {
        "title": "",
        "purpose": "",
        "goal": "population",
        "consent_text": "",
        "quota": 500,
        "minimum_n": 20,
        "pilot_quota": 10,
        "budget": "300.00",
        "protects_participation": True,
        "linkable": False,
        "questions": [new_question("choices", 1)],
        "levels": [_level(name, offered=name in ("medium", "high")) for name in LEVELS],
    }


def new_question(kind: str, number: int) -> dict[str, Any]:
    return {"id": f"q{number}", "text": "", "type": kind, "options": "", "low": "1", "high": "5", "step": "1"}


def _level(name: str, *, offered: bool) -> dict[str, Any]:
    epsilon, pay = _DEFAULTS[name]
    return {"name": name, "offered": offered, "epsilon": epsilon, "pay_cents": pay}


def from_draft(draft: dict[str, Any]) -> dict[str, Any]:
    """The form that shows a stored draft."""
    offered = {level["name"]: level for level in draft["levels"]}
    return draft | {
        "budget": f"{draft['budget_cents'] / 100:.2f}",
        "questions": [_question_form(question) for question in draft["questions"]],
        "levels": [_level(name, offered=name in offered) | _given(offered.get(name, {})) for name in LEVELS],
    }


def _given(level: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in level.items() if value is not None}


def _question_form(question: dict[str, Any]) -> dict[str, Any]:
    domain = question["domain"]
    listed = domain.get("options") or domain.get("boxes") or []
    scale = {name: domain.get(name, "1") for name in ("low", "high", "step")}
    return question | {"type": domain["type"], "options": "\n".join(listed), **scale}


def posted(given: Mapping[str, str]) -> dict[str, Any]:
    """The form as it was filled in, whether it makes sense or not."""
    count = min(int(given["n_questions"]) if given.get("n_questions", "").isdigit() else 0, MAX_QUESTIONS)
    form = {name: given.get(name, "") for name in ("title", "purpose", "goal", "consent_text", "budget")}
    numbers = {name: given.get(name, "") for name in ("quota", "minimum_n", "pilot_quota")}
    flags = {name: given.get(name) == "on" for name in ("protects_participation", "linkable")}
    questions = [
        {
            name: given.get(f"q{n}-{name}", "")
            for name in ("id", "text", "type", "options", "low", "high", "step", "gold")
        }
        for n in range(count)
    ]
    levels = [
        {
            "name": name,
            "offered": given.get(f"level-{name}") == "on",
            "epsilon": given.get(f"level-{name}-epsilon", ""),
            "pay_cents": given.get(f"level-{name}-pay", ""),
        }
        for name in LEVELS
    ]
    return form | numbers | flags | {"questions": questions, "levels": levels}


def to_draft(form: dict[str, Any]) -> Draft:
    """The draft, or a refusal whose sentence says which field is wrong."""
    spelled = {
        "title": form["title"],
        "purpose": form["purpose"],
        "goal": form["goal"],
        "consent_text": form["consent_text"],
        "protects_participation": form["protects_participation"],
        "linkable": form["linkable"],
        "quota": form["quota"],
        "minimum_n": form["minimum_n"],
        "pilot_quota": form["pilot_quota"],
        "budget_cents": _cents(form["budget"]),
        "questions": [_question(each) for each in form["questions"]],
        "levels": [_level_spelled(each) for each in form["levels"] if each["offered"]],
    }
    try:
        return Draft.model_validate(spelled)
    except ValidationError as error:
        raise Refusal("invalid", "; ".join(_sentence(each) for each in error.errors()[:5])) from None


def _question(each: dict[str, Any]) -> dict[str, Any]:
    listed = [line.strip() for line in str(each["options"]).splitlines() if line.strip()]
    domains: dict[str, dict[str, Any]] = {
        "choices": {"type": "choices", "options": listed},
        "tick-all": {"type": "tick-all", "boxes": listed},
        "scale": {"type": "scale", "low": each["low"], "high": each["high"], "step": each["step"] or "1"},
    }
    domain = domains.get(each["type"], domains["choices"])
    return {"id": each["id"], "text": each["text"], "domain": domain, "gold": each.get("gold") or None}


def _level_spelled(each: dict[str, Any]) -> dict[str, Any]:
    unprotected = each["name"] == "none"
    return {
        "name": each["name"],
        "mechanism": "none" if unprotected else "randomized-response",
        "epsilon": None if unprotected else str(each["epsilon"]),
        "pay_cents": each["pay_cents"],
    }


def _cents(text: object) -> int:
    whole, _, part = str(text).strip().replace(",", ".").partition(".")
    if not whole.isdigit() or (part and not part.isdigit()) or len(part) > 2:
        raise Refusal("invalid", f"the budget must be an amount such as 300.00; got {str(text)[:20]!r}")
    return int(whole) * 100 + int(part.ljust(2, "0") or 0)


def _sentence(error: Any) -> str:
    place = " ".join(str(part + 1) if isinstance(part, int) else str(part) for part in error["loc"])
    said = str(error["msg"]).removeprefix("Value error, ")
    return f"{place}: {said}" if place else said
