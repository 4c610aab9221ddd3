"""One price for everybody who is asked, raised for fresh people until enough accept (Ligett & Roth 2012).

Costs may be correlated with answers, so those who refuse are not like those who accept: prices rise until almost nobody
refuses. Nobody states a cost and nobody is asked twice, so it is best to accept an offer that covers one's cost, and no
other. Prices grow by `growth`, and each round asks n people who were not asked before:

    n = max( 8 ln(6J/β) / α²,  16 ln(3J/β) / (α ε) )      for J rounds, error α, failure probability β.

With probability 1 − β, in every round at once, sampling errs by at most α/4 (Hoeffding) and each of the two Laplace
noises of scale 2/ε by at most n α/8. The last round has a noisy count of acceptances of (1 − α/2) n or more, so at most
5α/8 refused; half of that is taken for them. The share errs by at most α/4 + 5α/16 + α/8 < α. And if 1 − α/8 of the
people accept p*, the first round at that price or above is the last: it offers at most growth · p*, and all rounds
together pay at most growth² / (growth − 1) · n p*, which is least, 4 n p*, at growth 2. Where too few accept even
the highest price, nothing is promised: there is no estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from crowdveil.errors import InputError
from crowdveil.validation import Positive, Rule, check_settings

_ERROR = Rule("above 0 and below 1", lambda error: 0 < error < 1)
_GROWTH = Rule("above 1 and at most 100", lambda growth: 1 < growth <= 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeItOrLeaveIt:
    """`error` of a share at `failure` probability, ε of everybody who accepts, and prices from first to highest."""

    name: ClassVar[str] = "take-it-or-leave-it"
    error: Annotated[float, _ERROR]
    epsilon: Positive
    first_price: Positive
    highest_price: Positive
    growth: Annotated[float, _GROWTH] = 2.0
    failure: Annotated[float, _ERROR] = 0.05

    def __post_init__(self) -> None:
        check_settings(self)
        if self.highest_price < self.first_price:
            got = f"{self.highest_price:g} below {self.first_price:g}"
            raise InputError(f"highest_price must be at least first_price; got {got}", field="highest_price")

    @property
    def prices(self) -> tuple[float, ...]:
        """The price of each round; the last is the highest that is ever offered."""
        rounds = math.ceil(math.log(self.highest_price / self.first_price, self.growth) - 1e-9)
        return (*(self.first_price * self.growth**number for number in range(rounds)), self.highest_price)

    @property
    def n_asked(self) -> int:
        """People who are asked in each round."""
        rounds, alpha = len(self.prices), self.error
        sampling = 8 * math.log(6 * rounds / self.failure) / alpha**2
        noise = 16 * math.log(3 * rounds / self.failure) / (alpha * self.epsilon)
        return math.ceil(max(sampling, noise))

    @property
    def noise_scale(self) -> float:
        """Of the Laplace noise on the count of acceptances and on that of answers: each takes half of ε."""
        return 2 / self.epsilon

    @property
    def enough(self) -> float:
        """The noisy count of acceptances with which a round is the last."""
        return (1 - self.error / 2) * self.n_asked

    def estimate(self, noisy_yes: float, noisy_accepted: float) -> float:
        """The share of yes; those who refused count half."""
        refused = max(self.n_asked - noisy_accepted, 0.0)
        return min(max((noisy_yes + refused / 2) / self.n_asked, 0.0), 1.0)

    def most_paid(self, rounds: int) -> float:
        """What so many rounds cost if everybody accepts."""
        return self.n_asked * sum(self.prices[:rounds])
