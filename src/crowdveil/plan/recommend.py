"""Which mechanism: the one with the least expected error among those that can serve the domain and ε."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdveil.channel import Channel
from crowdveil.domain import Scale
from crowdveil.errors import ChannelError, InputError
from crowdveil.mechanisms import ChannelMechanism, mechanism
from crowdveil.plan.density_evolution import Prediction
from crowdveil.plan.design import Setting
from crowdveil.progress import counted

SIMPLEST = "randomized-response"
FOR_CHOICES = (SIMPLEST, "subset-selection")
FOR_SCALES = (SIMPLEST, "optimal-scale", "discrete-laplace", "subset-selection")
# A more elaborate mechanism must earn its place.
_MARGIN = 0.97

Predictor = Callable[[Setting, Channel], Prediction]


@dataclass(frozen=True, slots=True, eq=False)
class Recommendation:
    """The mechanism, its channel at the planned ε, and the expected error of every mechanism that was tried."""

    mechanism: str
    channel: Channel
    tried: dict[str, float]

    def why(self, measure: str) -> str:
        chosen_error = self.tried[self.mechanism]
        # Subset selection of one option *is* randomised response: an equal number is not an alternative.
        others = ", ".join(
            f"{name} {_beside(error, chosen_error)}" for name, error in self.tried.items() if error != chosen_error
        )
        if not others:
            return f"no mechanism that serves this domain at this ε does better than {self.mechanism}"
        best = (
            "has the least"
            if chosen_error <= min(self.tried.values())
            else "is the simplest and within 3 % of the least"
        )
        return f"{self.mechanism} {best} expected {measure} ({others})"


def _beside(error: float, chosen_error: float) -> str:
    """An alternative's error beside the chosen one's: its own number would be calculated where that is simulated."""
    if not 0 < chosen_error < math.inf:
        return "more" if error > chosen_error else "less"
    if error >= 2 * chosen_error:
        return f"{error / chosen_error:.2g} times as much"
    return f"{100 * abs(error / chosen_error - 1):.2g} % {'more' if error > chosen_error else 'less'}"


def recommend(setting: Setting, predictor: Predictor, *, only: str | None = None) -> Recommendation:
    """Try what fits the domain (or `only` one mechanism) and keep the best; ties go to the simplest."""
    names = FOR_SCALES if isinstance(setting.domain, Scale) else FOR_CHOICES
    if only is not None:
        only_channel = mechanism_channel(only, setting)
        return Recommendation(only, only_channel, {only: predictor(setting, only_channel).error})
    channels = {name: channel for name in names if (channel := _try_channel(name, setting)) is not None}
    tried = {}
    for name, channel in counted(list(channels.items()), "mechanisms compared"):
        try:
            tried[name] = predictor(setting, channel).error
        except ChannelError:
            del channels[name]
    if not tried:
        raise InputError(
            f"no mechanism serves this domain at ε {setting.epsilon:g}",
            fix="choose an ε from 0.01 to 8, or fewer levels",
        )
    best = min(tried, key=lambda name: tried[name])
    if SIMPLEST in tried and tried[best] > _MARGIN * tried[SIMPLEST]:
        best = SIMPLEST
    return Recommendation(best, channels[best], tried)


def mechanism_channel(name: str, setting: Setting) -> Channel:
    """The channel of this mechanism at the setting's ε."""
    chosen = mechanism(name, epsilon=setting.epsilon, **_participation(setting))
    if not isinstance(chosen, ChannelMechanism):
        raise InputError(f"mechanism {name} is never deployed, so there is nothing to plan", fix=f"use {SIMPLEST}")
    channel = chosen.channel(setting.domain)
    if channel.is_identity:
        raise InputError(f"mechanism {name} protects nothing, so there is no ε to plan with", fix=f"use {SIMPLEST}")
    if _blurs_participation(channel):
        raise InputError(
            f"with mechanism {name} a question not answered reports like an average answer, so that nobody can tell "
            "how many answered",
            fix=f"use {SIMPLEST}",
        )
    return channel


def _blurs_participation(channel: Channel) -> bool:
    """∅ reports as the mean of the levels: no method can then learn the share that was answered."""
    table = channel.table
    return channel.protects_participation and bool(np.allclose(table[-1], table[:-1].mean(axis=0), atol=1e-6))


def _participation(setting: Setting) -> dict[str, bool]:
    return {"protect_participation": True} if setting.protect_participation else {}


def _try_channel(name: str, setting: Setting) -> Channel | None:
    """The channel, or None where this mechanism cannot serve the setting."""
    try:
        return mechanism_channel(name, setting)
    except InputError:
        return None
