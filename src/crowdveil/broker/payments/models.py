"""Money in whole cents: per study what may be spent, per payee and month what was earned."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from crowdveil.broker.clock import today
from crowdveil.broker.ids import ID_LENGTH, random_id


class Purse(models.Model):
    """What one study may spend and how many may answer; closed to new submissions unless `accepting`."""

    study = models.CharField(max_length=ID_LENGTH, primary_key=True)
    accepting = models.BooleanField(default=False)
    budget = models.BigIntegerField()
    held = models.BigIntegerField(default=0)
    paid = models.BigIntegerField(default=0)
    commission = models.BigIntegerField(default=0)
    quota = models.BigIntegerField()
    places_held = models.BigIntegerField(default=0)
    places_taken = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(held__gte=0, paid__gte=0, commission__gte=0, places_held__gte=0),
                name="purse_never_negative",
            ),
            models.CheckConstraint(condition=Q(budget__gte=F("paid") + F("commission")), name="purse_never_overspent"),
        ]


class Earning(models.Model):
    """What a payee earned in a month, over all studies together: an amount per study would tell the level."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    payee = models.CharField(max_length=ID_LENGTH)
    period = models.CharField(max_length=7)
    cents = models.BigIntegerField(default=0)
    paid_out = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["payee", "period"], name="one_earning_per_period"),
            models.CheckConstraint(condition=Q(paid_out__lte=F("cents")), name="never_paid_out_twice"),
        ]


class PayoutBatch(models.Model):
    """One run of payouts by an operator."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    day = models.DateField(default=today)
    cents = models.BigIntegerField(default=0)


class Payout(models.Model):
    """One payee's total in a batch."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    batch = models.ForeignKey(PayoutBatch, on_delete=models.PROTECT, related_name="payouts")
    payee = models.CharField(max_length=ID_LENGTH)
    cents = models.BigIntegerField()
