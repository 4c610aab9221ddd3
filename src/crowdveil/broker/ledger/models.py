"""Each worker's caps, what is spent and what is held, in whole nano-units; and every spend by itself."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from crowdveil.broker.clock import today
from crowdveil.broker.ids import ID_LENGTH, random_id


class Budget(models.Model):
    """The broker's guard for one worker. The worker's device keeps the ledger that counts."""

    account = models.CharField(max_length=ID_LENGTH, primary_key=True)
    epsilon_cap = models.BigIntegerField()
    rho_cap = models.BigIntegerField()
    epsilon_spent = models.BigIntegerField(default=0)
    rho_spent = models.BigIntegerField(default=0)
    epsilon_held = models.BigIntegerField(default=0)
    rho_held = models.BigIntegerField(default=0)
    unprotected = models.IntegerField(default=0)

    class Meta:
        # The last line of defence only: a lost update keeps `spent` small and passes it.
        constraints = [
            models.CheckConstraint(
                condition=Q(epsilon_spent__gte=0, rho_spent__gte=0, epsilon_held__gte=0, rho_held__gte=0),
                name="budget_never_negative",
            ),
        ]


class Reservation(models.Model):
    """ε, money and a place held for a worker who accepted a study; gone once settled, released or expired."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    study = models.CharField(max_length=ID_LENGTH)
    account = models.CharField(max_length=ID_LENGTH)
    level = models.CharField(max_length=6)
    epsilon = models.BigIntegerField()
    rho = models.BigIntegerField()
    cost = models.BigIntegerField()
    expires = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "account"], name="one_reservation_per_study")]
        indexes = [models.Index(fields=["expires"], name="reservation_expires")]


class Spend(models.Model):
    """One release of one worker: append-only; an unprotected one is listed with nothing to sum."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    account = models.CharField(max_length=ID_LENGTH)
    study = models.CharField(max_length=ID_LENGTH)
    level = models.CharField(max_length=6)
    epsilon = models.BigIntegerField(null=True)
    rho = models.BigIntegerField(null=True)
    day = models.DateField(default=today)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["account", "study"], name="one_spend_per_study"),
            models.CheckConstraint(condition=Q(epsilon__gte=0) | Q(epsilon__isnull=True), name="spend_never_negative"),
        ]


class OneByOne(models.Model):
    """Answers of one worker to one pool that are protected one by one: listed beside the sums, never in them.

    `epsilon` is the largest ε of a single answer; together the answers cost up to `count` times as much.
    """

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    account = models.CharField(max_length=ID_LENGTH)
    study = models.CharField(max_length=ID_LENGTH)
    level = models.CharField(max_length=6)
    epsilon = models.BigIntegerField()
    count = models.BigIntegerField()
    day = models.DateField(default=today)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["account", "study"], name="one_row_one_by_one_per_study")]
