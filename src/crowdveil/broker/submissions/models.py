"""One row per submission: a pseudonym that means nothing outside its study, and report codes."""

from __future__ import annotations

from django.db import models

from crowdveil.broker.clock import today
from crowdveil.broker.ids import ID_LENGTH, random_id


class Submission(models.Model):
    """All reports of one worker to one study, in one cell, so that none is ever stored without the others.

    `codes` holds one little-endian 16-bit report code per question of the definition, 65535 where there is none.
    `receipt` and `idempotency` let a retry be recognised; they are emptied when the study closes.
    """

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    study = models.CharField(max_length=ID_LENGTH)
    pseudonym = models.CharField(max_length=64)
    level = models.SmallIntegerField()
    codes = models.BinaryField()
    # Unique over all studies: a device that used one key twice would link two of its pseudonyms.
    withdrawal_sha256 = models.CharField(max_length=64, unique=True)
    receipt = models.CharField(max_length=ID_LENGTH, blank=True)
    idempotency = models.CharField(max_length=64, blank=True)
    day = models.DateField(default=today)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "pseudonym"], name="one_submission_per_study")]
        indexes = [models.Index(fields=["study", "id"], name="submission_shuffled")]


class Withdrawal(models.Model):
    """The hash of a used withdrawal key: asking twice gets the same reply, and says nothing about whom."""

    withdrawal_sha256 = models.CharField(max_length=64, primary_key=True)
    study = models.CharField(max_length=ID_LENGTH)
