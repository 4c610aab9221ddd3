"""Workers with a personal ε who sell a report at that ε or nothing: a budget-feasible knapsack auction.

The buyer wants as much purchased privacy Σ ε as a budget buys (Zhang, Beltran & Liu 2020, who assume known
distributions of costs). Without such knowledge the deterministic auction of Chen, Gravin & Lu (2011) is truthful in
dominant strategies, individually rational and within the budget, and buys at least 1/(2 + √2) of the best Σ ε that
could be had at the true costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from crowdveil.errors import InputError
from crowdveil.pricing.bids import Amount, Bid, Purchase, check_bids, parse_amount

CENT = Fraction(1, 100)


@dataclass(frozen=True, slots=True)
class SingleMinded:
    """Who sells at their own ε. Bids are whole cents; a winner is paid the largest bid that would still win."""

    name: ClassVar[str] = "single-minded"
    budget: Amount

    def run(self, bids: Sequence[Bid]) -> Purchase:
        check_bids(bids, at_least=1)
        for bid in bids:
            if bid.epsilon is None or bid.epsilon <= 0:
                raise InputError(f"epsilon must be a number above 0; got none of {bid.worker!r}", field="epsilon")
            if bid.cost % CENT:
                raise InputError(f"a bid must be whole cents; got {float(bid.cost):g}", field="bid")
        # What is beyond the last whole cent cannot be paid.
        budget = parse_amount(self.budget, "budget", positive=True) // CENT * CENT
        winners = [bids[row] for row in sorted(choose_winners(bids, budget))]
        payments = tuple(_critical_bid(bids, bid, budget) for bid in winners)
        epsilon = tuple(_value(bid) for bid in winners)
        return Purchase(self.name, tuple(bid.worker for bid in winners), epsilon, payments)


def choose_winners(bids: Sequence[Bid], budget: Fraction) -> set[int]:
    """The rows that win: the worker with the largest ε alone, or a proportional share for many."""
    able = [row for row, bid in enumerate(bids) if bid.cost <= budget]
    if not able:
        return set()
    largest = max(able, key=lambda row: (_value(bids[row]), -row))
    value, others = _value(bids[largest]), _fractional_optimum([bids[row] for row in able if row != largest], budget)
    # (1 + √2) value ≥ others, without the root.
    if others <= value or (others - value) ** 2 <= 2 * value**2:
        return {largest}
    winners, total = set[int](), Fraction(0)
    for row in sorted(able, key=lambda row: (bids[row].cost / _value(bids[row]), row)):
        total += _value(bids[row])
        if bids[row].cost * total > budget * _value(bids[row]):
            break
        winners.add(row)
    return winners


def _fractional_optimum(bids: Sequence[Bid], budget: Fraction) -> Fraction:
    """The most Σ ε that the money buys if workers could be bought in part."""
    total = Fraction(0)
    for bid in sorted(bids, key=lambda bid: bid.cost / _value(bid)):
        part = min(budget / bid.cost, Fraction(1)) if bid.cost else Fraction(1)
        total += part * _value(bid)
        budget -= part * bid.cost
    return total


def _critical_bid(bids: Sequence[Bid], winner: Bid, budget: Fraction) -> Fraction:
    """The largest bid with which this worker still wins, by bisection: who wins also wins with every lower bid."""
    row = bids.index(winner)
    low, high = int(winner.cost / CENT), int(budget / CENT)
    while low < high:
        middle = (low + high + 1) // 2
        tried = [*bids[:row], replace(winner, cost=middle * CENT), *bids[row + 1 :]]
        low, high = (middle, high) if row in choose_winners(tried, budget) else (low, middle - 1)
    return low * CENT


def _value(bid: Bid) -> Fraction:
    assert bid.epsilon is not None
    return bid.epsilon
