"""Finished estimates, kept in batches so that two looks never differ by one person."""

from __future__ import annotations

from django.db import models

from crowdveil.broker.clock import today
from crowdveil.broker.ids import ID_LENGTH, random_id


class Batch(models.Model):
    """The estimates of one study from `n` submissions."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    study = models.CharField(max_length=ID_LENGTH)
    number = models.IntegerField()
    n = models.IntegerField()
    day = models.DateField(default=today)
    # Made when the study closed; nothing that happens afterwards, a withdrawal included, makes another one.
    final = models.BooleanField(default=False)
    estimates = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "number"], name="one_batch_per_number")]
