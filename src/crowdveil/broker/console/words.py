"""ε in words that somebody without a course in privacy can use."""

from __future__ import annotations

import math

from django.utils.translation import gettext as _

from crowdveil.guarantee import round_up


def epsilon_words(epsilon: float, n_options: int = 2) -> str:
    """What one report can tell at the most, as odds, and how often randomised response keeps the answer."""
    odds = math.exp(min(epsilon, 20))
    keep = odds / (odds + n_options - 1)
    return (
        _(
            "One report changes the odds of any guess about an answer at most %(odds)s to 1. "
            "With %(options)d options, %(keep)d of 100 reports are the answer itself."
        )
        % {"odds": f"{odds:.1f}", "options": n_options, "keep": round(100 * keep)}
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


def shown_epsilon(nano: int) -> str:
    """Nano-units as text, rounded up."""
    return round_up(nano / 1e9)


def money(cents: int) -> str:
    """Cents with two decimals."""
    return f"{cents // 100}.{cents % 100:02d}"
