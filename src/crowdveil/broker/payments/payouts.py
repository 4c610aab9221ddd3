"""Payout batches: everything owed, one total per payee, each cent paid out once."""

from __future__ import annotations

from collections import Counter

from crowdveil.broker.audit_log.chain import record
from crowdveil.broker.db.transactions import execute_rowcount, write_transaction
from crowdveil.broker.payments.models import Earning, Payout, PayoutBatch


def pay_out(operator: str) -> PayoutBatch:
    """Turn every balance into one payout per payee."""
    with write_transaction():
        owed: Counter[str] = Counter()
        for earning in Earning.objects.select_for_update().order_by("id"):
            due = earning.cents - earning.paid_out
            if due and _claim(earning, due):
                owed[earning.payee] += due
        batch = PayoutBatch.objects.create(cents=owed.total())
        Payout.objects.bulk_create(
            [Payout(batch=batch, payee=payee, cents=cents) for payee, cents in sorted(owed.items())], batch_size=500
        )
        record(operator, "payout", batch.id)
        return batch


def _claim(earning: Earning, due: int) -> bool:
    # The second condition makes a concurrent batch that saw the same balance claim nothing.
    claim = "UPDATE payments_earning SET paid_out = paid_out + %s WHERE id = %s AND paid_out = %s"
    return execute_rowcount(claim, due, earning.id, earning.paid_out) == 1
