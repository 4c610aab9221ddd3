"""What is wrong with a form, field by field, in the words of its labels."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from crowdveil.broker.console.i18n.translate import translate


def complaint(error: Any) -> str:
    """One finding of the validator as a sentence: where, then what."""
    location = _place([part for part in error["loc"] if part not in ("domain", "choices", "scale", "tick-all")])
    message = _problem(error)
    return f"{location}: {message}" if location else message


def _place(parts: list[Any]) -> str:
    if len(parts) > 1 and parts[0] in ("questions", "levels"):
        kind = _("Question %(number)s") if parts[0] == "questions" else _("Level %(number)s of those offered")
        rest = _place([part for part in parts[2:] if isinstance(part, str)])
        return ", ".join(filter(None, (kind % {"number": parts[1] + 1}, rest)))
    return ", ".join(_labels().get(str(part), str(part)) for part in parts)


def _labels() -> dict[str, str]:
    return {
        "title": _("Title"),
        "purpose": _("Purpose, as workers read it"),
        "consent_text": _("Consent text"),
        "goal": _("What do you want to learn?"),
        "questions": _("Questions"),
        "levels": _("Privacy levels and pay"),
        "text": _("Text"),
        "id": _("Short name"),
        "options": _("Options, one per line"),
        "boxes": _("Boxes, one per line"),
        "low": _("Lowest level"),
        "high": _("Highest level"),
        "step": _("Step"),
        "gold": _("Known right answer"),
        "identifying": _("Tags"),
        "epsilon": _("ε of one report"),
        "pay_cents": _("Pay, in cents"),
        "mechanism": _("Mechanism"),
        "quota": _("Places"),
        "budget_cents": _("Budget"),
        "minimum_n": _("Show results from"),
        "reservation_minutes": _("Minutes a place is held"),
        "pilot_quota": _("Places of a pilot"),
        "max_answers": _("At most this many answers each"),
        "selection": _("Who may answer"),
        "fairness": _("Fairness"),
        "any_of": _("… and the answer is one of these, one per line"),
    }


def _problem(error: Any) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in ("missing", "string_too_short"):
        return _("must not be empty")
    if kind == "too_short":
        return _("needs at least %(n)s") % {"n": context["min_length"]}
    if kind in ("too_long", "string_too_long"):
        return _("must not be longer than %(n)s") % {"n": context["max_length"]}
    if kind in ("greater_than_equal", "greater_than"):
        return _("must be at least %(n)s") % {"n": context.get("ge", context.get("gt"))}
    if kind in ("less_than_equal", "less_than"):
        return _("must be at most %(n)s") % {"n": context.get("le", context.get("lt"))}
    if kind in ("int_parsing", "int_from_float", "int_type", "decimal_parsing", "float_parsing"):
        return _("must be a number")
    if kind == "string_pattern_mismatch":
        return _("is spelled in a way that cannot be used; got %(value)s") % {"value": str(error["input"])[:40]}
    message = str(error["msg"]).removeprefix("Value error, ")
    return translate(message) or message
