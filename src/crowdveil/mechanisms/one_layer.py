"""Li's one-layer mechanism: everybody flips with one public probability (Li et al. 2018, §5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Annotated, ClassVar

from crowdveil.channel import Channel
from crowdveil.channel.encoding import Rotate
from crowdveil.domain import Domain
from crowdveil.errors import InputError, UnservableError
from crowdveil.guarantee import POSITIVE
from crowdveil.mechanisms.base import ORDINARY, ChannelMechanism
from crowdveil.mechanisms.randomized_response import rotation
from crowdveil.validation import Rule, check_settings

_FLIP = Rule("a probability above 0 and below 1", lambda flip: 0 < flip < 1, fix="use mechanism none for no privacy")


@dataclass(frozen=True, slots=True, kw_only=True)
class OneLayer(ChannelMechanism):
    """With probability `flip` report one of the other s − 1 symbols: ε = ln((1 − flip)(s − 1) / flip).

    Give `flip`, or `epsilon` and the flip probability that keeps it is used; then it is randomised response.

    >>> from crowdveil import Choices
    >>> OneLayer(flip=0.25).channel(Choices(("no", "yes"))).epsilon  # ln 3
    1.0986122886681098
    """

    name: ClassVar[str] = "one-layer"
    summary: ClassVar[str] = "flip to another option with one public probability, or the one ε asks for"
    epsilon: Annotated[float | None, POSITIVE, ORDINARY] = None
    flip: Annotated[float | None, _FLIP] = None
    protect_participation: bool = False

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.flip is None):
            raise InputError("mechanism one-layer needs either epsilon or flip", fix="give exactly one of them")
        check_settings(self)

    def channel(self, domain: Domain) -> Channel:
        symbols = self.symbols(domain)
        if self.epsilon is not None:
            bits, form = rotation(len(symbols), self.epsilon)
            return Channel(symbols, symbols, bits, "rotate", form)
        assert self.flip is not None
        return Channel(symbols, symbols, 64, "rotate", flipping(len(symbols), Fraction(str(self.flip))))


def flipping(n_symbols: int, flip: Fraction) -> Rotate:
    """The 64-bit weights of a given flip probability; `lie` is rounded up, so ε is not above the formula's."""
    if flip * n_symbols > n_symbols - 1:
        raise UnservableError(
            f"flip must be at most {(n_symbols - 1) / n_symbols:.4g} with {n_symbols} symbols; got {float(flip):g}",
            fix="a larger one would make lies likelier than the answer",
        )
    lie = min(ceil(2**64 * flip / (n_symbols - 1)), 2**64 // n_symbols)
    return Rotate(2**64 - (n_symbols - 1) * lie, lie)
