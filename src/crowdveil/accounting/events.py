"""How one release behaves under composition: its ε, its ρ, its Rényi divergences and its privacy-loss atoms.

Numbers are those of a single report. How many there are is known to `Spend` alone and multiplied in one place,
`composition.releases`. A kind that is in use never changes its meaning; a new meaning is a new kind.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.accounting.dominating_pairs import Atoms, channel_atoms, pure_atoms
from crowdveil.channel import Channel
from crowdveil.channel.divergence import renyi_of
from crowdveil.channel.two_layer import report_laws, value_epsilon, value_epsilon_at_most, vector_epsilon
from crowdveil.errors import InputError
from crowdveil.exact import log_up, times_up
from crowdveil.guarantee import Unit
from crowdveil.validation import Rule, check_settings

# Fractions of a longer joint law take too long; its bound is within a few hundredths there.
_EXACT_UP_TO = 500
_LARGEST = 1e100
# A few products and functions of doubles err by less than this.
_UP = 1 + 1e-14
_LEAST_MU, _LARGEST_MU = 1e-9, 1e6
_MU = Rule(
    f"0, or from {_LEAST_MU:g} to {_LARGEST_MU:g}: noise of a Gaussian release from a millionth to a billion ranges",
    lambda mu: mu == 0 or _LEAST_MU <= mu <= _LARGEST_MU,
)
# A release costs something or nothing: below 0 it would pay others' privacy back.
_LOSS = Rule(f"0 or more, and below {_LARGEST:g} or infinite", lambda loss: 0 <= loss <= _LARGEST or loss == math.inf)
_OPTIONS = Rule(f"from 2 to {10**9}", lambda options: 2 <= options <= 10**9)


class Law(ABC):
    """The privacy of one report, as composition rules use it."""

    __slots__ = ()
    kind: ClassVar[str]
    # A ledger adds up releases whose sums of ε and ρ bound the loss whatever is asked next.
    chargeable: ClassVar[bool] = True

    unit: Unit
    protects_participation: bool
    epsilon: float
    rho: float

    @abstractmethod
    def renyi(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """An upper bound of D_α for each order α."""

    @abstractmethod
    def atoms(self) -> Atoms:
        """A pair of distributions that dominates every pair of neighbours."""

    def as_independent(self, count: int, unit: Unit) -> tuple[Law, int]:
        """`count` reports, seen in this unit, as independent releases of one law."""
        return self, count

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The fields that spell the law, without its kind; no floats, because hashes must agree everywhere."""


@dataclass(frozen=True, slots=True)
class ChannelLaw(Law):
    """A report drawn through a channel: everything is computed from its integers."""

    kind: ClassVar[str] = "channel"
    channel: Channel

    @property
    def unit(self) -> Unit:  # type: ignore[override]
        return self.channel.guarantee.unit

    @property
    def protects_participation(self) -> bool:  # type: ignore[override]
        return self.channel.protects_participation

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        return self.channel.guarantee.epsilon

    @property
    def rho(self) -> float:  # type: ignore[override]
        return self.channel.guarantee.rho

    def renyi(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        return renyi_of(self.channel.worst_rows(), alphas)

    def atoms(self) -> Atoms:
        return channel_atoms(self.channel.worst_rows())

    def to_json(self) -> dict[str, Any]:
        return {"channel": self.channel.to_json()}


@dataclass(frozen=True, slots=True)
class PureLaw(Law):
    """A report of which only ε is known: every ε-private pair is a blurred binary randomised response of that ε."""

    kind: ClassVar[str] = "pure"
    epsilon: Annotated[float, _LOSS]
    unit: Unit = "value"
    protects_participation: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def rho(self) -> float:  # type: ignore[override]
        # ρ of binary randomised response is its KL divergence, ε·(e^ε − 1)/(e^ε + 1).
        return self.epsilon * math.tanh(self.epsilon / 2) * _UP if math.isfinite(self.epsilon) else math.inf

    def renyi(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        if not 0 < self.epsilon < math.inf:
            return np.full(len(alphas), self.epsilon)
        # With p = 1/(1 + e^−ε) and s = (α − 1)ε: e^((α−1)D) = p·e^s + (1 − p)·e^−s, which less 1 is
        # 2·sinh²(s/2) + tanh(ε/2)·sinh(s): nothing cancels where s is small; where it is large e^s would overflow.
        keep, steps = -math.log1p(math.exp(-self.epsilon)), (alphas - 1) * self.epsilon
        small = np.minimum(steps, 1.0)
        near = np.log1p(2 * np.sinh(small / 2) ** 2 + math.tanh(self.epsilon / 2) * np.sinh(small))
        far = np.logaddexp(keep + steps, keep - self.epsilon - steps)
        return np.minimum(np.where(steps <= 1, near, far) / (alphas - 1) * _UP, self.epsilon)

    def atoms(self) -> Atoms:
        return pure_atoms(self.epsilon)

    def to_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"epsilon": repr(self.epsilon), "unit": self.unit}
        return fields | {"protects_participation": self.protects_participation}


@dataclass(frozen=True, slots=True)
class JointLaw(PureLaw):
    """One release about all answers at once, ε-private for one of them: changing n of them costs n·ε."""

    kind: ClassVar[str] = "joint"
    chargeable: ClassVar[bool] = False

    def as_independent(self, count: int, unit: Unit) -> tuple[Law, int]:
        times = count if unit == "vector" else 1
        return PureLaw(times_up(times, self.epsilon), self.unit, self.protects_participation), 1


@dataclass(frozen=True, slots=True)
class GaussianLaw(Law):
    """A number with Gaussian noise (research): `mu` is the range of the answers divided by the deviation."""

    kind: ClassVar[str] = "gaussian"
    # At every finite ε its δ is above zero.
    chargeable: ClassVar[bool] = False
    mu: Annotated[float, _MU]
    unit: Unit = "value"
    protects_participation: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        return math.inf if self.mu > 0 else 0.0

    @property
    def rho(self) -> float:  # type: ignore[override]
        return self.mu**2 / 2

    def renyi(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        return alphas * self.rho

    def atoms(self) -> Atoms:
        raise NotImplementedError("Gaussian losses have no atoms; composition adds their mu² and reads the sum exactly")

    def to_json(self) -> dict[str, Any]:
        return {
            "mu": repr(self.mu),
            "unit": self.unit,
            "protects_participation": self.protects_participation,
        }


@dataclass(frozen=True, slots=True)
class TwoLayerLaw(Law):
    """Answers flipped with one secret probability per worker, drawn from U(low, high) (Li 2018): a joint law.

    The numbers of one report hold for one report only; more of them share the secret, so nothing is multiplied.
    """

    kind: ClassVar[str] = "two-layer"
    chargeable: ClassVar[bool] = False
    low: Fraction
    high: Fraction
    n_options: Annotated[int, _OPTIONS]
    unit: Unit = "value"
    protects_participation: bool = False

    def __post_init__(self) -> None:
        check_settings(self)
        if not 0 <= self.low <= self.high <= 1:
            raise InputError(f"a two-layer spend needs 0 ≤ low ≤ high ≤ 1; got {self.low} and {self.high}")

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        return value_epsilon(1, self.n_options, self.low, self.high)

    @property
    def rho(self) -> float:  # type: ignore[override]
        return PureLaw(self.epsilon).rho

    def renyi(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        return PureLaw(self.epsilon).renyi(alphas)

    def atoms(self) -> Atoms:
        return pure_atoms(self.epsilon)

    def as_independent(self, count: int, unit: Unit) -> tuple[Law, int]:
        return self.of_some(count if unit == "vector" else 1, count), 1

    def of_some(self, changed: int, total: int) -> PureLaw:
        """What `total` reports tell about `changed` of the answers: group privacy, and never more than about all."""
        if total > _EXACT_UP_TO:
            return PureLaw(times_up(changed, value_epsilon_at_most(total, self.n_options, self.low, self.high)))
        one_value = value_epsilon(total, self.n_options, self.low, self.high)
        all_of_them = vector_epsilon(total, self.n_options, self.low, self.high) if changed > 1 else math.inf
        return PureLaw(all_of_them if changed >= total > 1 else min(times_up(changed, one_value), all_of_them))

    def to_json(self) -> dict[str, Any]:
        return {"low": str(self.low), "high": str(self.high), "n_options": self.n_options}


@dataclass(frozen=True, slots=True)
class SharedSecret(TwoLayerLaw):
    """Two-layer reports to questions with unlike numbers of options, `n_options` to `most_options`, under one secret.

    The options enter as a factor only: M is that of two options times 1/(s − 1) for each flip. So the largest
    ratio about one answer is that of the fewest or of the most options; of the whole vector it is at most the largest M
    with the fewest options over the smallest with the most.
    """

    kind: ClassVar[str] = "shared-secret"
    most_options: Annotated[int, _OPTIONS] = 2

    def of_some(self, changed: int, total: int) -> PureLaw:
        ends = [TwoLayerLaw(self.low, self.high, n_options) for n_options in (self.n_options, self.most_options)]
        worst = max((law.of_some(1, total) for law in ends), key=lambda law: law.epsilon)
        group = times_up(changed, worst.epsilon)
        if changed == 1 or total > _EXACT_UP_TO:
            return PureLaw(group)
        few, most = (report_laws(total, law.n_options, self.low, self.high) for law in ends)
        return PureLaw(min(group, log_up(max(few) / min(most))))


@dataclass(frozen=True, slots=True)
class Unprotected(PureLaw):
    """The report is the answer: listed by name beside every guarantee, never summed into one."""

    kind: ClassVar[str] = "unprotected"
    epsilon: Annotated[float, _LOSS] = math.inf

    def to_json(self) -> dict[str, Any]:
        return {}


def law_of_channel(channel: Channel) -> Law:
    """The law of a report through this channel; one that can prove its answer is no protection at all."""
    if channel.guarantee.research_only:
        raise InputError(
            "reports through this research channel are not independent, so their number does not tell their cost",
            fix="account for the mechanism by its name",
        )
    return ChannelLaw(channel) if channel.guarantee.protected else Unprotected()
