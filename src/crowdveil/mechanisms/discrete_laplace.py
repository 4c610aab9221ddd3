"""Discrete Laplace: two-sided geometric noise on the level, clamped to the scale (Ghosh et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1
from typing import ClassVar

from crowdveil.channel import Channel
from crowdveil.channel.encoding import Clamp
from crowdveil.domain import Domain
from crowdveil.mechanisms._integer_rounding import BELOW, BITS, at_most, require_scale, verify_epsilon
from crowdveil.mechanisms.base import EpsilonMechanism

MAX_LEVELS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(EpsilonMechanism):
    """A level moves by z steps with probability ∝ r^|z|, r = e^(−ε/(k−1)), and stops at the ends of the scale.

    Clamping to the scale loses nothing: how far outside a report would have landed says no more about the level.

    >>> from crowdveil import Scale
    >>> DiscreteLaplace(epsilon=1).channel(Scale(1, 5)).outputs
    ('1', '2', '3', '4', '5')
    """

    name: ClassVar[str] = "discrete-laplace"
    summary: ClassVar[str] = "move the level by two-sided geometric noise, clamped to the scale"

    def channel(self, domain: Domain) -> Channel:
        scale = require_scale(domain, self.name)
        at_most(MAX_LEVELS, scale.size, name=self.name, what="levels", instead="randomized-response or a larger step")
        form = Clamp(_noise(scale.size, self.epsilon * BELOW), 0, self.protect_participation)
        channel = Channel(self.symbols(domain), scale.symbols, BITS, "prefix", form)
        return verify_epsilon(channel, self.epsilon, name=self.name)


def _noise(n_levels: int, epsilon: float) -> tuple[int, ...]:
    """Weights of the shifts −(k−1) … k−1; the outermost carry their whole tails, the middle takes the remainder.

    P(z) = (1 − r)/(1 + r)·r^|z|, and the tail from z on is r^z/(1 + r). Between the two ends of the scale the
    tails differ by r^(k−1) = e^−ε, and inner levels by less.
    """
    reach, rate = n_levels - 1, epsilon / (n_levels - 1)
    whole = 2.0**BITS / (1 + exp(-rate))
    inner = [max(1, int(whole * -expm1(-rate) * exp(-rate * z))) for z in range(1, reach)]
    side = [*inner, max(1, int(whole * exp(-epsilon)))]
    return (*side[::-1], 2**BITS - 2 * sum(side), *side)
