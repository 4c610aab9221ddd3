"""The exact audit: fractions over the integer table. No samples, no rounding, a proof."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from crowdveil.audit.finding import Verdict
from crowdveil.channel import Channel
from crowdveil.channel.divergence import max_ratio
from crowdveil.exact import exp_down, exp_up


@dataclass(frozen=True, slots=True)
class Exact:
    """What the table says: the largest ratio as a fraction, ε and ρ (never understated), and the verdict on a claim."""

    ratio: Fraction | None
    epsilon: float
    rho: float
    verdict: Verdict


def exact_audit(channel: Channel, claimed: float) -> Exact:
    """Compare the largest likelihood ratio of the channel's table with e^claimed, in exact fractions."""
    ratio = max_ratio(channel.every_weight())
    guarantee = channel.guarantee
    return Exact(ratio, guarantee.epsilon, guarantee.rho, _verdict(ratio, claimed))


def _verdict(ratio: Fraction | None, claimed: float) -> Verdict:
    if claimed == float("inf"):
        return "holds"
    if ratio is None or ratio > exp_up(claimed):
        return "exceeds"
    # Between the two roundings of e^claimed, which agree to sixty digits, nothing is claimed.
    return "holds" if ratio <= exp_down(claimed) else "unknown"


def exact_delta(channel: Channel, epsilon: float) -> Fraction:
    """δ(ε) of one report: the largest `Σ max(0, W[x][y] − e^ε·W[x'][y])` over pairs of inputs; e^ε is rounded down."""
    gamma = exp_down(epsilon)
    rows = [[int(weight) for weight in row] for row in channel.every_weight()]
    return max(_excess(first, second, gamma) for first in rows for second in rows) / Fraction(2**channel.bits)


def _excess(first: list[int], second: list[int], gamma: Fraction) -> Fraction:
    return sum((max(p - gamma * q, Fraction(0)) for p, q in zip(first, second, strict=True)), Fraction(0))
