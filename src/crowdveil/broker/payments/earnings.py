"""What payees earned: one sum per month, so that no row tells which study, or at which level."""

from __future__ import annotations

from typing import Any

from crowdveil.broker import clock
from crowdveil.broker.db.transactions import execute_rowcount
from crowdveil.broker.ids import random_id
from crowdveil.broker.payments.models import Earning, Payout

_ADD = """
INSERT INTO payments_earning (id, payee, period, cents, paid_out) VALUES (%s, %s, %s, %s, 0)
ON CONFLICT (payee, period) DO UPDATE SET cents = payments_earning.cents + excluded.cents
"""


def earn(payee: str, cents: int) -> None:
    if cents:
        execute_rowcount(_ADD, random_id(), payee, clock.period(), cents)


def statement(payee: str) -> dict[str, Any]:
    """A payee's own account: earned, paid out, still owed."""
    earned = list(Earning.objects.filter(payee=payee).order_by("period"))
    paid_out = Payout.objects.filter(payee=payee).select_related("batch").order_by("batch__day", "id")
    return {
        "payee": payee,
        "earned": [{"period": each.period, "cents": each.cents} for each in earned],
        "paid_out": [{"day": each.batch.day.isoformat(), "cents": each.cents} for each in paid_out],
        "balance_cents": sum(each.cents - each.paid_out for each in earned),
    }
