"""Discrete Gaussian: bell-shaped noise on the level, clamped three σ beyond the scale (Canonne et al. 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import MAX_OUTPUTS, Channel
from crowdveil.channel.encoding import Clamp
from crowdveil.domain import Domain, Scale
from crowdveil.errors import InputError, UnservableError
from crowdveil.exact import decimal_text
from crowdveil.guarantee import POSITIVE
from crowdveil.mechanisms._integer_rounding import BELOW, BITS, at_most, require_scale, verify_epsilon
from crowdveil.mechanisms.base import ORDINARY, ChannelMechanism, Sigma
from crowdveil.validation import check_settings

MAX_LEVELS = 1000
_REACH = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian(ChannelMechanism):
    """A level moves by z steps with probability ∝ e^(−z²/2σ²) and stops 3 σ outside the scale.

    Give `epsilon`, and the smallest σ that keeps it is found; or give `sigma` in the units of the scale. Because all
    rows share the clamped range, δ = 0: the price of a pure ε is a somewhat larger σ than an (ε, δ) promise needs.

    >>> from crowdveil import Scale
    >>> print(DiscreteGaussian(sigma=6).guarantee(Scale(1, 5)))
    ε ≤ 2.3497 per value (the value of one answered question); whether a question was answered is visible
    """

    name: ClassVar[str] = "discrete-gaussian"
    summary: ClassVar[str] = "move the level by bell-shaped noise, clamped three σ beyond the scale"
    epsilon: Annotated[float | None, POSITIVE, ORDINARY] = None
    sigma: Sigma = None
    protect_participation: bool = False

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.sigma is None):
            raise InputError("discrete-gaussian needs either epsilon or sigma", fix="give exactly one of them")
        check_settings(self)

    def channel(self, domain: Domain) -> Channel:
        scale = require_scale(domain, self.name)
        at_most(MAX_LEVELS, scale.size, name=self.name, what="levels", instead="randomized-response or a larger step")
        channel = self._clamp_channel(scale, self._steps(scale))
        return channel if self.epsilon is None else verify_epsilon(channel, self.epsilon, name=self.name)

    def _steps(self, scale: Scale) -> float:
        """σ counted in steps of the scale."""
        if self.epsilon is None:
            assert self.sigma is not None
            return float(Fraction(str(self.sigma)) / Fraction(scale.step))
        return _smallest_sigma(scale.size, self.epsilon * BELOW)

    def _clamp_channel(self, scale: Scale, sigma: float) -> Channel:
        outside = _outside(sigma)
        n_outputs = scale.size + 2 * outside
        if n_outputs > MAX_OUTPUTS:
            raise UnservableError(
                f"mechanism {self.name} would need {n_outputs} outputs for this privacy and at most {MAX_OUTPUTS} fit",
                fix="use discrete-laplace, or a larger epsilon",
            )
        form = Clamp(_noise(scale.size + outside - 1, sigma), outside, self.protect_participation)
        outputs = tuple(decimal_text(scale.low + (code - outside) * scale.step) for code in range(n_outputs))
        return Channel(self.symbols(scale), outputs, BITS, "prefix", form)


def _outside(sigma: float) -> int:
    return max(1, math.ceil(_REACH * sigma))


def _tails(reach: int, sigma: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """e^(−z²/2σ²) for z = 0 … reach, and its sums from z outwards, both over the total."""
    far = reach + 40 * math.ceil(sigma) + 2
    mass = np.exp(-0.5 * (np.arange(far + 1) / sigma) ** 2)
    beyond = mass[::-1].cumsum()[::-1]
    total = 2 * beyond[0] - mass[0]
    return mass[: reach + 1] / total, beyond[: reach + 1] / total


def _noise(reach: int, sigma: float) -> tuple[int, ...]:
    """Weights of the shifts −reach … reach; the outermost carry their whole tails, the middle takes the remainder."""
    mass, beyond = _tails(reach, sigma)
    side = [max(1, int(weight * 2.0**BITS)) for weight in (*mass[1:-1], beyond[-1])]
    return (*side[::-1], 2**BITS - 2 * sum(side), *side)


def _loss(n_levels: int, sigma: float) -> float:
    """ε in floats: the worst output is an end of the range, where the tails of the nearest and farthest level meet.

    (The bell is log-concave, so the ratio of two shifts at a fixed distance only grows outwards.)
    """
    outside = _outside(sigma)
    _, beyond = _tails(outside + n_levels - 1, sigma)
    nearest, farthest = beyond[outside], beyond[-1]
    return float(np.log(nearest / farthest)) if farthest > 2.0**-BITS else math.inf


@lru_cache(maxsize=256)
def _smallest_sigma(n_levels: int, epsilon: float) -> float:
    """By bisection; the upper end always keeps ε."""
    high = 1.0
    while _loss(n_levels, high) > epsilon:
        high *= 2
        if n_levels + 2 * _outside(high) > 4 * MAX_OUTPUTS:
            return high
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if middle > 0 and _loss(n_levels, middle) <= epsilon else (middle, high)
    return high
