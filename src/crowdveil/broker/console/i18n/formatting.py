"""Words and numbers as people read them: ε as odds, money with two decimals, states and levels in their language."""

from __future__ import annotations

import json
import math
import re
from datetime import date

from django.conf import settings
from django.utils.formats import date_format, get_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from crowdveil.guarantee import round_up


def epsilon_words(epsilon: float, n_options: int = 2) -> str:
    """What one report can tell at the most, as odds, and how often randomised response keeps the answer."""
    odds = math.exp(min(epsilon, 20))
    keep = odds / (odds + n_options - 1)
    return (
        localized(f"ε = {epsilon:g}")
        + ". "
        + _(
            "One report changes the odds of any guess about an answer at most %(odds)s to 1. "
            "With %(options)d options, %(keep)d of 100 reports are the answer itself."
        )
        % {"odds": localized(f"{odds:.1f}"), "options": n_options, "keep": round(100 * keep)}
        + " "
        + _strength(epsilon)
    )


def _strength(epsilon: float) -> str:
    if epsilon <= 0.5:
        return _("Very strong protection; many workers are needed.")
    if epsilon <= 1.5:
        return _("Strong protection; a good default for sensitive questions.")
    if epsilon <= 3:
        return _("Moderate protection.")
    return _("Weak protection: most reports are the answers. Use it for harmless questions only.")


def word(name: str) -> str:
    """A state, level, role or policy in the reader's language; what is unknown stays as it is."""
    return {
        "draft": pgettext("state", "draft"),
        "pilot": pgettext("state", "pilot"),
        "open": pgettext("state", "open"),
        "closed": pgettext("state", "closed"),
        "published": pgettext("state", "published"),
        "none": pgettext("level", "none"),
        "low": pgettext("level", "low"),
        "medium": pgettext("level", "medium"),
        "high": pgettext("level", "high"),
        "requester": pgettext("role", "requester"),
        "operator": pgettext("role", "operator"),
        "first-come": pgettext("policy", "whoever comes first"),
        "random": pgettext("policy", "a random choice"),
        "greedy": pgettext("policy", "by how workers did before (greedy)"),
        "choices": pgettext("question", "one of several options"),
        "scale": pgettext("question", "a scale"),
        "tick-all": pgettext("question", "tick all that apply"),
    }.get(name, name)


def option_words(option: str, kind: str) -> str:
    """An option as people read it; a set of ticked boxes is a JSON list in the domain."""
    if kind != "tick-all":
        return option
    try:
        boxes = json.loads(option)
    except ValueError:
        return option
    return " + ".join(boxes) if boxes else _("nothing ticked")


def shown_epsilon(nano: int) -> str:
    """Nano-units as text, rounded up."""
    return localized(round_up(nano / 1e9))


def money(cents: int) -> str:
    """An amount with two decimals and the broker's currency."""
    return localized(f"{cents // 100}.{cents % 100:02d}\u00a0{settings.CURRENCY}")


def day(given: date | str) -> str:
    """A date, or the date at the beginning of a text, as the reader writes it."""
    known = date.fromisoformat(given[:10]) if isinstance(given, str) else given
    # Translators: how dates are written, in the letters of Django's filter "date".
    return date_format(known, pgettext("date", "Y-m-d"))


def percent(share: float) -> str:
    return localized(f"{100 * share:.1f}\u202f%")


def localized(text: str) -> str:
    """Numbers in a text with the reader's decimal sign."""
    return re.sub(r"(?<=\d)\.(?=\d)", str(get_format("DECIMAL_SEPARATOR")), text)
