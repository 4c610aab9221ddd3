"""A study's money and places: moved by one conditional UPDATE, so that a budget for 500 pays exactly 500."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from crowdveil.broker.db.transactions import execute_rowcount, fetch_one
from crowdveil.broker.payments.models import Purse
from crowdveil.broker.problems import Refusal

# What this very submission held is granted; anything else must fit into budget and quota beside all other holds.
_MOVE = """
UPDATE payments_purse SET
    held = held + %s, paid = paid + %s, commission = commission + %s,
    places_held = places_held + %s, places_taken = places_taken + %s
WHERE study = %s AND (%s = 1 OR accepting)
    AND paid + commission + held + %s <= budget
    AND places_taken + places_held + %s <= quota
"""


def commission_on(pay: int) -> int:
    """The broker's share, rounded up to a whole cent."""
    return -(-pay * settings.COMMISSION_BASIS_POINTS // 10_000)


def cost_with_commission(pay: int) -> int:
    return pay + commission_on(pay)


def hold(study: str, cost: int) -> None:
    if not execute_rowcount(_MOVE, cost, 0, 0, 1, 0, study, 0, cost, 1):
        raise escrow_refusal(study)


def settle(study: str, pay: int, held_cost: int | None) -> None:
    """Pay `pay` out of what was held, or out of what is left where nothing was held (None)."""
    places, held = (0, 0) if held_cost is None else (1, held_cost)
    moved = (-held, pay, commission_on(pay), -places, 1)
    if not execute_rowcount(_MOVE, *moved, study, 0, cost_with_commission(pay) - held, 1 - places):
        raise escrow_refusal(study)


def release(study: str, held_cost: int) -> None:
    execute_rowcount(_MOVE, -held_cost, 0, 0, -1, 0, study, 1, -held_cost, -1)


def escrow_refusal(study: str) -> Refusal:
    """Why the purse refused."""
    escrow_row = fetch_one("SELECT accepting FROM payments_purse WHERE study = %s", study)
    if escrow_row is None or not escrow_row[0]:
        return Refusal("not-open", "this study takes no answers now; nothing was stored and nothing was charged")
    return Refusal(
        "no-money", "all places of this study are taken or its money is used up; nothing was stored or charged"
    )


def serialize_escrow(purse: Purse) -> dict[str, Any]:
    return {
        "budget_cents": purse.budget,
        "held_cents": purse.held,
        "paid_cents": purse.paid,
        "commission_cents": purse.commission,
    }
