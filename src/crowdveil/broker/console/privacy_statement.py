"""What protected those who answered, by the levels that they used: in one line for captions, and level by level.

Sentences that claim protection have the context "protected" in the catalogue and those that deny it "unprotected", so
that a test can look for the former on every page about reports that are answers.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import npgettext, pgettext

from crowdveil.broker.console.i18n.formatting import localized, shown_epsilon
from crowdveil.broker.studies.definition import Opened, OpenedLevel
from crowdveil.guarantee import Guarantee, round_up


def protection(opened: Opened, batch: dict[str, Any]) -> dict[str, Any]:
    """The statement about one batch of results."""
    n, unprotected = batch["n"], batch["unprotected"]
    levels = [opened.levels[name] for name in batch.get("levels_used") or opened.levels]
    worst = {level.name: _worst(opened, level) for level in levels}
    epsilon = max((guarantee.epsilon for guarantee in worst.values() if guarantee.protected), default=0.0)
    values = {"n": n, "unprotected": unprotected, "epsilon": localized(round_up(epsilon))}
    sent = npgettext(
        "unprotected",
        "%(unprotected)s of %(n)s was sent as it is, without protection.",
        "%(unprotected)s of %(n)s were sent as they are, without protection.",
        unprotected,
    )
    if unprotected == 0:
        short = pgettext("protected", "Randomised on each worker's device: one report tells at most ε %(epsilon)s.")
        lead = pgettext(
            "protected", "Every answer was randomised on the device of who gave it; this server never had it."
        )
    elif unprotected == n:
        short = pgettext("unprotected", "Not protected: the reports are the answers.")
        lead = pgettext("unprotected", "Nothing: every report is the answer itself, as it was given.")
    else:
        short = (
            sent
            + " "
            + pgettext(
                "protected",
                "The others were randomised on the worker's device: one report tells at most ε %(epsilon)s.",
            )
        )
        lead = (
            sent
            + " "
            + pgettext(
                "protected",
                "The others were randomised on the device of who gave them; this server never had those answers.",
            )
        )
    return {
        "short": short % values,
        "lead": lead % values,
        "warning": sent % values if unprotected else "",
        "nothing": unprotected == n,
        "levels": [{"name": level.name, "promise": str(worst[level.name]), "total": _total(level)} for level in levels],
    }


def _worst(opened: Opened, level: OpenedLevel) -> Guarantee:
    return max((opened.channels[sha256].guarantee for sha256 in level.channels), key=lambda each: each.epsilon)


def _total(level: OpenedLevel) -> str:
    return "∞" if level.charge is None else shown_epsilon(level.charge["epsilon_nano"])
