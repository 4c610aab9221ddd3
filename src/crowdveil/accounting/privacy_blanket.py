"""The privacy blanket: which part of everybody's report looks like a report of either of two answers.

For two answers x and x′ of one person the channel splits exactly, R(x) = p·Q₀ + q·Q₁ + (1 − p − q)·Q and
R(x′) = q·Q₀ + p·Q₁ + (1 − p − q)·Q, with Q₀ and Q₁ the two sides of their total-variation distance. Whatever another
person answers, the report is drawn from Q₀ and from Q₁ with probability r each and from Q with probability s, because
r·(Q₀ + Q₁) + s·Q is below every row of the channel. So some of the others send clones of this person's report.

Balle, Bell, Gascón & Nissim (2019), The Privacy Blanket of the Shuffle Model; Feldman, McMillan & Talwar (2021, 2023),
Hiding Among the Clones, and its stronger version. All numbers here are fractions of the channel's integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import gcd
from typing import TypeAlias

import numpy as np

from crowdveil.channel import MAX_TABLE_INPUTS, Channel
from crowdveil.channel.encoding import Rotate
from crowdveil.exact import exp_up

# More kinds of pairs are bounded together by the worst of each number.
MAX_PAIRS = 64
# Columns of all pairs of submissions that are multiplied one by one: some twenty binary questions, about a second.
MAX_PRODUCT_COLUMNS = 1 << 13
# Which part of the largest possible r to take: less of r may leave more for s. Each gives a bound that is true.
CLONE_SHARES = (Fraction(1), Fraction(7, 8), Fraction(1, 2))

# One column of a pair: the weights of an output under x, under x′ and its smallest weight under any answer, without
# their common divisor, and how often. Outputs in the same proportions are one output.
Column: TypeAlias = tuple[tuple[int, int, int], int]
Pair: TypeAlias = tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Blanket:
    """p + q, (p − q)/(p + q), r and s of one pair of answers.

    The guarantee after shuffling is weaker the larger the first two are and the smaller the last two.
    """

    own: Fraction
    advantage: Fraction
    clone: Fraction
    common: Fraction


def blanket_of_epsilon(epsilon: float) -> Blanket:
    """Where only ε is known: every pair is a blurred binary randomised response (Kairouz, Oh & Viswanath 2015).

    With p = e^ε/(e^ε + 1): Q₀ + Q₁ = R(x) + R(x′), and R(z) ≥ e^−ε·max(R(x), R(x′)) ≥ e^−ε/2·(Q₀ + Q₁), so r = e^−ε/2.
    """
    ratio = exp_up(epsilon)
    return Blanket(Fraction(1), (ratio - 1) / (ratio + 1), 1 / (2 * ratio), Fraction(0))


def blankets_of(channels: Sequence[Channel], epsilon: float, clone_share: Fraction) -> list[Blanket]:
    """The blankets of all pairs of submissions, one report through each channel; of ε alone where they are too many."""
    pairs = _submission_pairs(channels)
    if pairs is None:
        return [blanket_of_epsilon(epsilon)]
    blankets = list(dict.fromkeys(_decompose(pair, clone_share) for pair in pairs if _differs(pair)))
    return blankets if len(blankets) <= MAX_PAIRS else [_worst(blankets)]


def _submission_pairs(channels: Sequence[Channel]) -> set[Pair] | None:
    """Pairs of whole submissions: the columns of a product channel are products of columns."""
    submissions: set[Pair] = {(((1, 1, 1), 1),)}
    for channel in channels:
        if not isinstance(channel.form, Rotate) and len(channel.inputs) > MAX_TABLE_INPUTS:
            return None
        pairs = _channel_pairs(channel, with_equal=len(channels) > 1)
        if len(channels) > 1 and _n_columns(submissions) * _n_columns(pairs) > MAX_PRODUCT_COLUMNS:
            return None
        submissions = {_multiply(one, other) for one in submissions for other in pairs}
    return submissions


def _n_columns(pairs: Iterable[Pair]) -> int:
    return sum(map(len, pairs))


def _channel_pairs(channel: Channel, *, with_equal: bool) -> set[Pair]:
    """All pairs of answers; those of one answer with itself matter where another question of the submission differs."""
    form, k = channel.form, len(channel.inputs)
    if isinstance(form, Rotate):
        keep, lie = form.keep, form.lie
        equal = _merge([((keep, keep, lie), 1), ((lie, lie, lie), k - 1)])
        unequal = _merge([((keep, lie, lie), 1), ((lie, keep, lie), 1), ((lie, lie, lie), k - 2)])
        return {unequal, equal} if with_equal else {unequal}
    floor = channel.weights.min(axis=0)
    indices = list(combinations(range(k), 2)) + ([(x, x) for x in range(k)] if with_equal else [])
    pairs = set()
    for x, other in indices:
        stacked = np.stack([channel.weights[x], channel.weights[other], floor], axis=1)
        columns, counts = np.unique(stacked, axis=0, return_counts=True)
        pairs.add(_merge(((a, b, w), n) for (a, b, w), n in zip(columns.tolist(), counts.tolist(), strict=True)))
    return pairs


def _multiply(one: Pair, other: Pair) -> Pair:
    return _merge(((a * c, b * d, v * w), m * n) for (a, b, v), m in one for (c, d, w), n in other)


def _merge(columns: Iterable[Column]) -> Pair:
    """Outputs in equal proportions as one, in one order for both directions of the pair: the bound is symmetric."""
    merged: Counter[tuple[int, int, int]] = Counter()
    for (a, b, floor), count in columns:
        if count and (divisor := gcd(a, b, floor)):
            merged[a // divisor, b // divisor, floor // divisor] += count * divisor
    swapped = {(b, a, floor): count for (a, b, floor), count in merged.items()}
    return min(tuple(sorted(merged.items())), tuple(sorted(swapped.items())))


def _differs(pair: Pair) -> bool:
    return any(a != b for (a, b, _), _ in pair)


def _decompose(pair: Pair, clone_share: Fraction) -> Blanket:
    """Split R(x) and R(x′) with the largest q, and put as much of it below every row as `clone_share` says.

    Q₀ and Q₁ are (R(x) − R(x′))₊ and (R(x′) − R(x))₊ divided by their mass T, and p − q = T. Then Q ≥ 0 needs
    q/T ≤ min(R(x), R(x′))/|R(x) − R(x′)| at every output, and below every row r/T ≤ min_z R(z)/|R(x) − R(x′)|.
    """
    total = sum(count * a for (a, _, _), count in pair)
    variation = Fraction(sum(count * abs(a - b) for (a, b, _), count in pair), 2)
    apart = [(a, b, floor) for (a, b, floor), _ in pair if a != b]
    q = min(Fraction(min(a, b), abs(a - b)) for a, b, _ in apart)
    r = clone_share * min(Fraction(floor, abs(a - b)) for a, b, floor in apart)
    shares = [
        (floor - r * abs(a - b)) / common for (a, b, floor), _ in pair if (common := min(a, b) - q * abs(a - b)) > 0
    ]
    own = variation * (1 + 2 * q) / total
    return Blanket(own, 1 / (1 + 2 * q), r * variation / total, min(shares, default=Fraction(0)) * (1 - own))


def _worst(blankets: Sequence[Blanket]) -> Blanket:
    return Blanket(
        max(blanket.own for blanket in blankets),
        max(blanket.advantage for blanket in blankets),
        min(blanket.clone for blanket in blankets),
        min(blanket.common for blanket in blankets),
    )
