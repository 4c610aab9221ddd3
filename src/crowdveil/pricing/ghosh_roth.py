"""Buying the same ε from the workers who ask least: fixed budget and fixed accuracy (Ghosh & Roth 2011).

A trusted curator counts how many of n workers hold a yes. It buys ε = 1/r from all but the r dearest workers, takes
r/2 for those, and publishes the count with Laplace noise of scale r:

    |estimate − count| ≤ r/2 + ln 3 · r   with probability at least 2/3,

since the noise exceeds t with probability exp(−t/r). No differentially private mechanism with an error below r/4 buys
less (their Theorem 3.1), so the error is at most 4 (1/2 + ln 3) = 6.4 times what any other needs. All winners are paid
the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from crowdveil.errors import InputError
from crowdveil.pricing.bids import Amount, Bid, Purchase, check_bids, parse_amount, sort_bids

ERROR_PER_WORKER_LEFT_OUT = 0.5 + math.log(3)


@dataclass(frozen=True, slots=True)
class FairQuery:
    """The most accurate count that a budget buys, among truthful mechanisms that pay all winners alike.

    >>> purchase = FairQuery(2).run([Bid("ada", Fraction(1)), Bid("bob", Fraction(1)), Bid("cy", Fraction(5))])
    >>> purchase.winners, purchase.payments
    (('ada', 'bob'), (Fraction(1, 1), Fraction(1, 1)))
    """

    name: ClassVar[str] = "fair-query"
    budget: Amount

    def run(self, bids: Sequence[Bid]) -> Purchase:
        """Bids are costs per unit of ε. Nobody sells where the budget does not pay even the first."""
        check_bids(bids)
        budget, order, n = parse_amount(self.budget, "budget", positive=True), sort_bids(bids), len(bids)
        # The largest k whose dearest member is paid by an equal share: v_k · 1/(n − k) ≤ B/k.
        k = max((k for k in range(1, n) if order[k - 1].cost * k <= budget * (n - k)), default=0)
        if k == 0:
            return Purchase(self.name, (), (), ())
        left_out = n - k
        payment = min(budget / k, order[k].cost / left_out)
        return _purchase(self.name, order[:k], left_out, payment)


@dataclass(frozen=True, slots=True)
class FixedAccuracy:
    """The cheapest purchase whose count errs by at most `error` workers with probability 2/3: a Vickrey auction.

    Every winner is paid the lowest losing bid.
    """

    name: ClassVar[str] = "fixed-accuracy"
    error: float

    def run(self, bids: Sequence[Bid]) -> Purchase:
        """Bids are costs per unit of ε."""
        check_bids(bids)
        if not 0 < self.error < math.inf:
            raise InputError(f"error must be a number above 0; got {self.error}", field="error")
        left_out = min(math.floor(self.error / ERROR_PER_WORKER_LEFT_OUT), len(bids))
        if left_out < 1:
            raise InputError(
                f"no purchase from these workers has an error of {self.error:g}",
                fix=f"allow an error of at least {ERROR_PER_WORKER_LEFT_OUT:.4g} workers",
                field="error",
            )
        order = sort_bids(bids)
        n_winners = len(bids) - left_out
        if n_winners == 0:
            return Purchase(self.name, (), (), ())
        return _purchase(self.name, order[:n_winners], left_out, order[n_winners].cost / left_out)


def _purchase(name: str, winners: Sequence[Bid], left_out: int, payment: Fraction) -> Purchase:
    return Purchase(
        name,
        tuple(bid.worker for bid in winners),
        (Fraction(1, left_out),) * len(winners),
        (payment,) * len(winners),
        ERROR_PER_WORKER_LEFT_OUT * left_out,
    )
