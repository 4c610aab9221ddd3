"""The either-or ledger against the optimal adaptive adversary for binary randomised response, computed exactly.

The adversary picks the ε of every question after seeing all earlier reports, and stops when it likes. Its largest
real δ at ε_max is a recursion over (privacy loss so far, Σε, Σρ) that tries every next question.
"""

from __future__ import annotations

import math
from functools import cache

import pytest

from crowdveil.accounting import Budget, Charge, PureLaw, nano_up

STEP = 0.25


def worst_delta(budget: Budget, multiples: tuple[int, ...], *, rule: str = "either-or") -> float:
    """The largest Σ of max(0, P − e^ε_max·Q) over transcripts that any schedule reaches; losses come in STEPs."""
    laws = {multiple: PureLaw(multiple * STEP) for multiple in multiples}
    costs = {m: Charge(nano_up(law.epsilon), nano_up(law.rho)) for m, law in laws.items()}
    keep = {m: 1 / (1 + math.exp(-law.epsilon)) for m, law in laws.items()}

    def accepted(total: Charge) -> bool:
        if rule == "both ignored":
            return total.epsilon <= 2 * budget.cap.epsilon
        return total.within(budget.cap)

    @cache
    def best(loss: int, epsilon: int, rho: int) -> float:
        """The most that transcripts with this P/Q can still add, as a share of their P mass."""
        stop_now = max(0.0, 1 - math.exp(budget.epsilon - loss * STEP))
        options = [stop_now]
        for m in multiples:
            total = Charge(epsilon, rho) + costs[m]
            if accepted(total):
                options.append(
                    keep[m] * best(loss + m, total.epsilon, total.rho)
                    + (1 - keep[m]) * best(loss - m, total.epsilon, total.rho)
                )
        return max(options)

    return best(0, 0, 0)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1, 0.05), (2, 0.05), (2, 0.01), (3, 0.01), (4, 1e-6), (2, 1e-3), (5, 0.1)]
)
def test_no_adaptive_schedule_passes_the_budget(epsilon: float, delta: float) -> None:
    assert worst_delta(Budget(epsilon, delta), (1, 2, 4)) <= delta


def test_the_recursion_does_catch_an_unsound_filter() -> None:
    budget = Budget(2, 1e-3)
    assert worst_delta(budget, (1, 2, 4), rule="both ignored") > budget.delta


def test_the_adversary_really_gains_something() -> None:
    assert worst_delta(Budget(2, 0.05), (1, 2, 4)) > 0
