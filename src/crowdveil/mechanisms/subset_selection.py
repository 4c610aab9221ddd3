"""Subset selection: report several symbols, the true one more often among them (Ye & Barg 2018; Wang et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, exp
from typing import ClassVar

from crowdveil.channel import MAX_OUTPUTS, Channel
from crowdveil.channel.encoding import Subset
from crowdveil.domain import Domain
from crowdveil.exact import exp_down
from crowdveil.guarantee import Guarantee
from crowdveil.mechanisms._integer_rounding import BELOW, BITS, verify_epsilon
from crowdveil.mechanisms.base import EpsilonMechanism
from crowdveil.mechanisms.randomized_response import rotation


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(EpsilonMechanism):
    """Report `w` of the `k` symbols, w near k / (e^ε + 1); with w = 1 it is randomised response and is built as such.

    All C(k, w) subsets are outputs of the table, so w is kept small enough for 4096 of them; the guarantee says so
    where that costs accuracy.

    >>> from crowdveil import Choices
    >>> SubsetSelection(epsilon=0.5).channel(Choices(("a", "b", "c", "d", "e", "f"))).outputs[0]
    ('a', 'b')
    """

    name: ClassVar[str] = "subset-selection"
    summary: ClassVar[str] = "report a few options at once, the answer among them more often than ε hides"

    def channel(self, domain: Domain) -> Channel:
        symbols = self.symbols(domain)
        size = subset_size(len(symbols), self.epsilon)
        if size == 1:
            bits, form = rotation(len(symbols), self.epsilon)
            return Channel(symbols, symbols, bits, "rotate", form)
        outputs = tuple(combinations(symbols, size))
        channel = Channel(symbols, outputs, BITS, "prefix", _weights(len(symbols), size, self.epsilon))
        return verify_epsilon(channel, self.epsilon, name=self.name)

    def guarantee(self, domain: Domain) -> Guarantee:
        n_symbols = len(self.symbols(domain))
        used, best = subset_size(n_symbols, self.epsilon), _best_size(range(1, n_symbols), n_symbols, self.epsilon)
        promise = self.channel(domain).guarantee
        if used == best:
            return promise
        return replace(promise, note=f"subsets of {used} instead of {best}, so that there are at most {MAX_OUTPUTS}")


def subset_size(n_symbols: int, epsilon: float) -> int:
    """The best w among those with at most 4096 subsets."""
    sizes = [size for size in range(1, max(2, n_symbols // 2 + 1)) if comb(n_symbols, size) <= MAX_OUTPUTS]
    return _best_size(sizes or [1], n_symbols, epsilon)


def _best_size(sizes: list[int] | range, n_symbols: int, epsilon: float) -> int:
    return min(sizes, key=lambda size: _frequency_variance(n_symbols, size, epsilon), default=1)


def _frequency_variance(k: int, w: int, epsilon: float) -> float:
    """Variance of one symbol's frequency estimate per report, q(1 − q)/(p − q)² (Ye & Barg 2018, eq. 8 up to 1/n).

    p and q are the probabilities that a subset holds the true symbol, and another one.
    """
    if k == 1:
        return 0.0
    # Divided by e^ε throughout, so that no ε overflows.
    lie = exp(-epsilon)
    p = w / (w + (k - w) * lie)
    q = (p * (w - 1) + (1 - p) * w) / (k - 1)
    return q * (1 - q) / (p - q) ** 2 if p > q else float("inf")


def _weights(k: int, w: int, epsilon: float) -> Subset:
    # n_inside·inside + n_outside·outside = 2^bits with inside / outside = e^ε; `outside` is rounded up, so the
    # ratio can only fall, and ε is taken a little smaller because the remainder adds 1 to some of the `inside`.
    n_inside, n_outside = comb(k - 1, w - 1), comb(k - 1, w)
    outside = int(2**BITS / (n_inside * exp_down(epsilon * BELOW) + n_outside)) + 1
    return Subset(w, (2**BITS - n_outside * outside) // n_inside, outside)
