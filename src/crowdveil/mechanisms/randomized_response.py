"""k-ary randomised response: tell the truth most of the time, else name another symbol (Warner 1965; Kairouz 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crowdveil.channel import Channel
from crowdveil.channel.encoding import Rotate
from crowdveil.domain import Domain
from crowdveil.errors import UnservableError
from crowdveil.exact import exp_down
from crowdveil.mechanisms.base import EpsilonMechanism

_SMALLEST_LIE = 2**10
_MOST_SYMBOLS = 2**10


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(EpsilonMechanism):
    """Keep the answer with probability e^ε / (e^ε + k − 1), else report one of the others, all alike.

    >>> from crowdveil import Choices
    >>> RandomizedResponse(epsilon=1).channel(Choices(("no", "yes"))).epsilon <= 1
    True
    """

    name: ClassVar[str] = "randomized-response"
    summary: ClassVar[str] = "keep the answer with the largest probability ε allows, else name another option"

    def channel(self, domain: Domain) -> Channel:
        symbols = self.symbols(domain)
        bits, form = rotation(len(symbols), self.epsilon)
        return Channel(symbols, symbols, bits, "rotate", form)


def rotation(n_symbols: int, epsilon: float) -> tuple[int, Rotate]:
    """The weights of randomised response over `n_symbols`, with the number of bits they need.

    lie = ⌊2^bits / (e^ε + k − 1)⌋ + 1 with e^ε rounded down, so lie > 2^bits / (e^ε + k − 1); with
    keep = 2^bits − (k − 1)·lie this gives keep / lie < e^ε: the exact ε never exceeds the request.
    """
    for bits in (32, 64):
        lie = int(2**bits / (exp_down(epsilon) + n_symbols - 1)) + 1
        # Rounding each lie up takes up to k − 1 from what is kept: with many symbols 32 bits would waste privacy.
        if lie >= _SMALLEST_LIE and n_symbols <= _MOST_SYMBOLS:
            break
    if n_symbols == 1:
        return 32, Rotate(2**32, 0)
    if n_symbols * lie > 2**bits:
        raise UnservableError(
            f"mechanism randomized-response cannot keep ε {epsilon:g} with {n_symbols} symbols", fix="choose a larger ε"
        )
    return bits, Rotate(2**bits - (n_symbols - 1) * lie, lie)
