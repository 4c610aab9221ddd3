"""The broker's guard over a worker's privacy budget: the either-or rule as one conditional UPDATE.

A release passes iff Σε ≤ ε_max or Σρ ≤ ρ_max(ε_max, δ_max), holds counted as spent. The row is read and changed in one
statement: reading first and writing after would overspend fourfold under concurrent requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import connection

from crowdveil.accounting.conversion import rho_max
from crowdveil.accounting.nano import NANO, nano_down
from crowdveil.broker.db.transactions import changed, row
from crowdveil.broker.ledger.models import Budget
from crowdveil.broker.problems import Refusal

# Every transaction about a worker begins with this statement or with `lock`: the row lock puts them in line. A hold
# that was given back meanwhile changes no row; as an error of the table's own check it would stand in PostgreSQL's log.
_MOVE = """
UPDATE ledger_budget SET
    epsilon_held = epsilon_held + %s, rho_held = rho_held + %s,
    epsilon_spent = epsilon_spent + %s, rho_spent = rho_spent + %s, unprotected = unprotected + %s
WHERE account = %s AND epsilon_held >= %s AND rho_held >= %s AND (
    %s = 1
    OR epsilon_spent + epsilon_held + %s <= epsilon_cap
    OR rho_spent + rho_held + %s <= rho_cap)
"""


@dataclass(frozen=True, slots=True)
class MirrorCharge:
    """Nano-ε and nano-ρ; an unprotected release charges nothing and is listed instead."""

    epsilon: int = 0
    rho: int = 0
    unprotected: bool = False


NOTHING = MirrorCharge()


@lru_cache(maxsize=1024)
def rho_cap_of(epsilon_cap: int) -> int:
    return nano_down(rho_max(epsilon_cap / NANO, float(settings.DELTA)))


def create(account: str, epsilon_cap: int) -> Budget:
    return Budget.objects.create(account=account, epsilon_cap=epsilon_cap, rho_cap=rho_cap_of(epsilon_cap))


def set_cap(account: str, epsilon_cap: int) -> None:
    """The worker's own act, on the worker's own device."""
    Budget.objects.filter(account=account).update(epsilon_cap=epsilon_cap, rho_cap=rho_cap_of(epsilon_cap))


def hold(account: str, charge: MirrorCharge) -> None:
    """Hold what an accepted study may cost, or refuse whole with the numbers."""
    held, back = (charge.epsilon, charge.rho, 0, 0, 0), (0, 0)
    # A release that charges nothing is not a question of budget: it is listed, and it does not block the worker.
    if not changed(_MOVE, *held, account, *back, int(charge.unprotected), charge.epsilon, charge.rho):
        raise over_budget(account, charge)


def lock(account: str) -> None:
    """Wait, inside a transaction, until nobody else moves this budget; on SQLite whoever writes is alone already.

    A statement of its own: PostgreSQL would read a table joined to it as it was before the wait.
    """
    if connection.vendor == "postgresql":
        row("SELECT 1 FROM ledger_budget WHERE account = %s FOR UPDATE", account)


def settle(account: str, charge: MirrorCharge, held: MirrorCharge) -> None:
    """Spend `charge` in place of what was held for it; what was held is granted even if the cap fell meanwhile."""
    extra_epsilon, extra_rho = charge.epsilon - held.epsilon, charge.rho - held.rho
    granted = charge.unprotected or (extra_epsilon <= 0 and extra_rho <= 0)
    moved = (-held.epsilon, -held.rho, charge.epsilon, charge.rho, int(charge.unprotected))
    back = (held.epsilon, held.rho)
    if not changed(_MOVE, *moved, account, *back, int(granted), extra_epsilon, extra_rho):
        raise _unsettled(account, charge, held)


def release(account: str, held: MirrorCharge) -> None:
    """Give a hold back: nothing was drawn for it as far as the broker knows."""
    changed(_MOVE, -held.epsilon, -held.rho, 0, 0, 0, account, held.epsilon, held.rho, 1, 0, 0)


def hold_gone() -> Refusal:
    return Refusal("not-open", "your reservation ended this very moment; send the same submission again")


def _unsettled(account: str, charge: MirrorCharge, held: MirrorCharge) -> Refusal:
    budget = Budget.objects.filter(account=account).first()
    gone = budget is not None and (budget.epsilon_held < held.epsilon or budget.rho_held < held.rho)
    return hold_gone() if gone else over_budget(account, charge)


def over_budget(account: str, charge: MirrorCharge) -> Refusal:
    budget = Budget.objects.filter(account=account).first()
    if budget is None:
        return Refusal("unauthorized", "this account no longer exists")
    left_epsilon = budget.epsilon_cap - budget.epsilon_spent - budget.epsilon_held
    left_rho = budget.rho_cap - budget.rho_spent - budget.rho_held
    return Refusal(
        "over-budget",
        f"this study costs ε {_amount(charge.epsilon)} at this level but you have ε {_amount(left_epsilon)} left; "
        "choose a higher level of privacy, or raise your cap on your device",
        needed_epsilon_nano=charge.epsilon,
        left_epsilon_nano=left_epsilon,
        needed_rho_nano=charge.rho,
        left_rho_nano=left_rho,
    )


def _amount(nano: int) -> str:
    return f"{nano / NANO:.9f}".rstrip("0").rstrip(".")


def spelled(budget: Budget) -> dict[str, Any]:
    return {
        "epsilon_cap_nano": budget.epsilon_cap,
        "delta": settings.DELTA,
        "rho_cap_nano": budget.rho_cap,
        "epsilon_spent_nano": budget.epsilon_spent,
        "rho_spent_nano": budget.rho_spent,
        "epsilon_held_nano": budget.epsilon_held,
        "rho_held_nano": budget.rho_held,
        "unprotected": budget.unprotected,
    }
