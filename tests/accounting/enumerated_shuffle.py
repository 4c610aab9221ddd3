"""A slow second implementation of what a shuffled table tells: all datasets, all tables, fractions only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from math import comb

from crowdveil import Channel
from crowdveil.exact import exp_down

Law = dict[tuple[int, ...], Fraction]


def rows_of(channels: Sequence[Channel]) -> list[list[Fraction]]:
    """P(report | answers) of whole submissions, every combination of answers a row."""
    tables = [[[Fraction(w, 2**one.bits) for w in row] for row in one.weights.tolist()] for one in channels]
    rows = []
    for chosen in product(*tables):
        row = [Fraction(1)]
        for part in chosen:
            row = [left * right for left in row for right in part]
        rows.append(row)
    return rows


def shuffled_law(rows: Sequence[Sequence[Fraction]], dataset: Sequence[int]) -> Law:
    """The histogram of reports, one person after the other."""
    law: Law = {(0,) * len(rows[0]): Fraction(1)}
    for answer in dataset:
        grown: Law = defaultdict(Fraction)
        for counts, mass in law.items():
            for report, probability in enumerate(rows[answer]):
                grown[(*counts[:report], counts[report] + 1, *counts[report + 1 :])] += mass * probability
        law = grown
    return law


def hockey_stick(p: Law, q: Law, epsilon: float) -> Fraction:
    ratio = exp_down(epsilon)
    return sum((max(Fraction(0), mass - ratio * q.get(table, Fraction(0))) for table, mass in p.items()), Fraction(0))


def worst_delta(rows: Sequence[Sequence[Fraction]], n: int, epsilon: float) -> Fraction:
    """The largest δ(ε) over all answers of the others and both directions of every pair of answers."""
    worst = Fraction(0)
    for others in combinations_with_replacement(range(len(rows)), n - 1):
        laws = [shuffled_law(rows, (*others, answer)) for answer in range(len(rows))]
        worst = max(worst, *(hockey_stick(p, q, epsilon) for p, q in permutations(laws, 2)))
    return worst


def binary_worst_delta(keep: Fraction, n: int, epsilon: float) -> Fraction:
    """The same for binary randomised response, where a table is the number of its ones."""
    ratio, worst = exp_down(epsilon), Fraction(0)
    for others in _binary_others(keep, n - 1):
        p = _convolve(others, [keep, 1 - keep])
        q = _convolve(others, [1 - keep, keep])
        for one, other in ((p, q), (q, p)):
            worst = max(worst, sum((max(Fraction(0), a - ratio * b) for a, b in zip(one, other, strict=True))))
    return worst


def _binary_others(keep: Fraction, n: int) -> Iterator[list[Fraction]]:
    """The number of reported ones of n people of whom 0, 1, … n have the answer one."""
    for ones in range(n + 1):
        # Reports of one are Bin(ones, keep) + Bin(n − ones, 1 − keep).
        yield _convolve(_binomial(ones, keep), _binomial(n - ones, 1 - keep))


def _binomial(n: int, probability: Fraction) -> list[Fraction]:
    return [comb(n, a) * probability**a * (1 - probability) ** (n - a) for a in range(n + 1)]


def _convolve(one: Sequence[Fraction], other: Sequence[Fraction]) -> list[Fraction]:
    total = [Fraction(0)] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            total[i + j] += a * b
    return total


def blanket_delta(keep: Fraction, lie: Fraction, k: int, n: int, epsilon: float) -> Fraction:
    """δ(ε) of the statistic (h_x, h_x′, C) of k-ary randomised response: C blanket reports and the person's own."""
    ratio, total = exp_down(epsilon), Fraction(0)
    for count, mass in enumerate(_binomial(n - 1, k * lie)):
        for x in range(count + 2):
            for other in range(count + 2 - x):
                rest = count + 1 - x - other
                at_x, at_other = _trinomial(x - 1, other, rest, k), _trinomial(x, other - 1, rest, k)
                elsewhere = (k - 2) * lie * _trinomial(x, other, rest - 1, k)
                p = keep * at_x + lie * at_other + elsewhere
                q = lie * at_x + keep * at_other + elsewhere
                total += mass * max(Fraction(0), p - ratio * q)
    return total


def _trinomial(x: int, other: int, rest: int, k: int) -> Fraction:
    if min(x, other, rest) < 0:
        return Fraction(0)
    ways = comb(x + other + rest, x) * comb(other + rest, other)
    return ways * Fraction(1, k) ** (x + other) * Fraction(k - 2, k) ** rest
