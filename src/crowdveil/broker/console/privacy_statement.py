"""What protected those who answered: the privacy statement of a results page, level by level and in one line."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from crowdveil.broker.console.i18n.formatting import localized, shown_epsilon
from crowdveil.broker.studies.definition import Opened, OpenedLevel
from crowdveil.guarantee import Guarantee, round_up


def protection(opened: Opened) -> dict[str, Any]:
    """One line for every caption, and the promise of each level."""
    worst = {name: _worst(opened, level) for name, level in opened.levels.items()}
    protected = [guarantee.epsilon for guarantee in worst.values() if guarantee.protected]
    return {
        "short": _short(max(protected, default=0.0), all_protected=len(protected) == len(worst)),
        "lead": _("Every answer was randomised on the device of who gave it; this server never had it."),
        "levels": [
            {"name": name, "promise": str(worst[name]), "total": _total(level)} for name, level in opened.levels.items()
        ],
    }


def _short(epsilon: float, *, all_protected: bool) -> str:
    if epsilon == 0.0:
        return _("Not protected: the reports are the answers.")
    told = {"epsilon": localized(round_up(epsilon))}
    if all_protected:
        return _("Randomised on each worker's device: one report tells at most ε %(epsilon)s.") % told
    return _("Randomised on the devices of those who chose protection: one report tells at most ε %(epsilon)s.") % told


def _worst(opened: Opened, level: OpenedLevel) -> Guarantee:
    return max((opened.channels[sha256].guarantee for sha256 in level.channels), key=lambda each: each.epsilon)


def _total(level: OpenedLevel) -> str:
    return "∞" if level.charge is None else shown_epsilon(level.charge["epsilon_nano"])
