"""From the editor's form to a draft and back; what a form cannot spell in a draft survives the round trip."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from crowdveil.broker.console.forms.base import blank
from crowdveil.broker.console.forms.errors import complaint
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.draft import Draft

_SAME = ("title", "purpose", "goal", "consent_text", "protects_participation", "linkable", "partial_pay")
_COUNTS = ("quota", "minimum_n", "pilot_quota", "reservation_minutes")


def from_draft(draft: dict[str, Any]) -> dict[str, Any]:
    """The form that shows a stored draft."""
    empty, offered = blank(), {level["name"]: level for level in draft["levels"]}
    return {name: draft[name] for name in _SAME + _COUNTS} | {
        "max_answers": draft["max_answers"] or "",
        "policy": draft["selection"]["policy"],
        "fairness": draft["selection"]["fairness"] or "",
        "budget": f"{draft['budget_cents'] / 100:.2f}",
        "questions": [_question_form(question) for question in draft["questions"]],
        "levels": [level | _level_form(offered.get(level["name"])) for level in empty["levels"]],
    }


def _level_form(level: dict[str, Any] | None) -> dict[str, Any]:
    if level is None:
        return {"offered": False}
    parameters = {name: value for name, value in level.items() if value is not None}
    return parameters | {"offered": True, "parameters": json.dumps(level["parameters"])}


def _question_form(question: dict[str, Any]) -> dict[str, Any]:
    domain, rule = question["domain"], question["show_if"] or {"question": "", "any_of": []}
    return {
        "id": question["id"],
        "text": question["text"],
        "type": domain["type"],
        "options": "\n".join(domain.get("options") or domain.get("boxes") or []),
        **{name: domain.get(name, "1") for name in ("low", "high", "step")},
        "gold": question["gold"] or "",
        "show_if": rule["question"],
        "any_of": "\n".join(rule["any_of"]),
        "identifying": " ".join(question["identifying"]),
    }


def to_draft(form: dict[str, Any]) -> Draft:
    """The draft, or a refusal whose sentence says which field is wrong."""
    spelled = {name: form[name] for name in _SAME + _COUNTS} | {
        "max_answers": form["max_answers"] or None,
        "selection": {"policy": form["policy"] or "first-come", "fairness": form["fairness"] or None},
        "budget_cents": _cents(form["budget"]),
        "questions": [_question(each) for each in form["questions"]],
        "levels": [_level(each) for each in form["levels"] if each["offered"]],
    }
    try:
        # What a form posts is all text, numbers included.
        return Draft.model_validate(spelled, strict=False)
    except ValidationError as error:
        raise Refusal("invalid", "; ".join(complaint(each) for each in error.errors()[:5])) from None


def _question(each: dict[str, Any]) -> dict[str, Any]:
    rule = {"question": each["show_if"], "any_of": _lines(each["any_of"])}
    return {
        "id": each["id"],
        "text": each["text"],
        "domain": build_domain(each),
        "gold": each["gold"] or None,
        "show_if": rule if each["show_if"] else None,
        "identifying": each["identifying"].replace(",", " ").split(),
    }


def build_domain(each: dict[str, Any]) -> dict[str, Any]:
    """The domain that a question's fields spell."""
    if each["type"] == "scale":
        return {"type": "scale", "low": each["low"], "high": each["high"], "step": each["step"] or "1"}
    listed = _lines(each["options"])
    boxes = each["type"] == "tick-all"
    return {"type": "tick-all", "boxes": listed} if boxes else {"type": "choices", "options": listed}


def _level(each: dict[str, Any]) -> dict[str, Any]:
    unprotected = each["name"] == "none"
    return {
        "name": each["name"],
        "mechanism": "none" if unprotected else each["mechanism"] or "randomized-response",
        "epsilon": None if unprotected else str(each["epsilon"]),
        "pay_cents": each["pay_cents"],
        "parameters": _parameters(each["parameters"]),
    }


def _parameters(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise Refusal("invalid", "the parameters of a level must be a JSON object; got something else") from None


def _lines(text: object) -> list[str]:
    return [line.strip() for line in str(text).splitlines() if line.strip()]


def _cents(text: object) -> int:
    whole, _, part = str(text).strip().replace(",", ".").partition(".")
    plain = (whole + part).isascii() and whole.isdecimal() and (not part or part.isdecimal())
    if not plain or len(part) > 2 or len(whole) > 10:
        raise Refusal("invalid", f"the budget must be an amount such as 300.00; got {str(text)[:20]!r}")
    return int(whole) * 100 + int(part.ljust(2, "0") or 0)
