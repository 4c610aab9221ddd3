"""The study editor's form: any number of questions as flat fields, filled from a draft or as it was posted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crowdveil.broker.console.i18n.formatting import epsilon_words
from crowdveil.broker.studies.draft import LEVELS

KINDS = ("choices", "scale", "tick-all")
POLICIES = ("first-come", "random", "greedy")
MAX_QUESTIONS = 200
_DEFAULTS = {"low": ("3", 50), "medium": ("1", 40), "high": ("0.5", 30), "none": ("", 60)}
_TEXTS = ("title", "purpose", "goal", "consent_text", "budget", "policy", "fairness")
_NUMBERS = ("quota", "minimum_n", "pilot_quota", "max_answers", "reservation_minutes")
_FLAGS = ("protects_participation", "linkable", "partial_pay")
_QUESTION = ("id", "text", "type", "options", "low", "high", "step", "gold", "show_if", "any_of", "identifying")
_LEVEL = ("epsilon", "pay_cents", "mechanism", "parameters", "share")


def blank() -> dict[str, Any]:
    """A new study: one question, two protected levels."""
    return {
        "title": "",
        "purpose": "",
        "goal": "population",
        "consent_text": "",
        "quota": 500,
        "minimum_n": 20,
        "pilot_quota": 10,
        "max_answers": "",
        "reservation_minutes": 60,
        "budget": "300.00",
        "policy": "first-come",
        "fairness": "",
        "protects_participation": True,
        "linkable": False,
        "partial_pay": False,
        "questions": [new_question("choices", 1)],
        "levels": [_level(name, offered=name in ("medium", "high")) for name in LEVELS],
    }


def new_question(kind: str, number: int) -> dict[str, Any]:
    """An empty question of one kind."""
    empty = dict.fromkeys(_QUESTION, "")
    return empty | {"id": f"q{number}", "type": kind, "low": "1", "high": "5", "step": "1", "fresh": number > 1}


def _level(name: str, *, offered: bool) -> dict[str, Any]:
    epsilon, pay = _DEFAULTS[name]
    mechanism = "none" if name == "none" else "randomized-response"
    given = {"epsilon": epsilon, "pay_cents": pay, "mechanism": mechanism, "parameters": "{}", "share": ""}
    return {"name": name, "offered": offered} | given


def place_of(text: str) -> int | None:
    """A small whole number as a page of ours writes it; anything else is none."""
    return int(text) if text.isdecimal() and len(text) <= 4 else None


def posted(given: Mapping[str, str]) -> dict[str, Any]:
    """The form as it was filled in, whether it makes sense or not."""
    count = min(place_of(given.get("n_questions", "")) or 0, MAX_QUESTIONS)
    form: dict[str, Any] = {name: _text(given, name) for name in _TEXTS + _NUMBERS}
    form |= {name: given.get(name) == "on" for name in _FLAGS}
    return form | {
        "questions": [{name: _text(given, f"q{n}-{name}") for name in _QUESTION} for n in range(count)],
        "levels": [
            {"name": level, "offered": given.get(f"level-{level}") == "on"}
            | {name: given.get(f"level-{level}-{name}", "") for name in _LEVEL}
            for level in LEVELS
        ],
    }


def _text(given: Mapping[str, str], name: str) -> str:
    """Browsers end the lines of a text with CR LF; a study's texts have LF."""
    return given.get(name, "").replace("\r\n", "\n")


def shown(form: dict[str, Any]) -> dict[str, Any]:
    """The form with what its page needs besides: earlier questions to depend on, ε in words, ends of the sliders."""
    questions = [
        question | {"earlier": [each["id"] for each in form["questions"][:place]]}
        for place, question in enumerate(form["questions"])
    ]
    levels = [level | _slider(level["epsilon"]) for level in form["levels"]]
    return form | {"questions": questions, "levels": levels}


def _slider(text: object) -> dict[str, Any]:
    """A slider must be able to stand exactly where the draft is, or saving would change it."""
    try:
        epsilon = float(str(text))
    except ValueError:
        return {"words": "", "top": 5, "step": "0.05"}
    if not 0 < epsilon <= 20:
        return {"words": "", "top": 5, "step": "0.05"}
    on_grid = abs(epsilon * 20 - round(epsilon * 20)) < 1e-9
    return {"words": epsilon_words(epsilon), "top": 5 if epsilon <= 5 else 20, "step": "0.05" if on_grid else "any"}
