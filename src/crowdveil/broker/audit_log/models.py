"""What requesters and operators did, in order; submissions are never in it, their order would tell who."""

from __future__ import annotations

from django.db import models

from crowdveil.broker.clock import now
from crowdveil.broker.ids import ID_LENGTH


class Act(models.Model):
    """One act; `entry` is the hash of the other fields, `previous` among them."""

    index = models.IntegerField(primary_key=True)
    at = models.DateTimeField(default=now)
    actor = models.CharField(max_length=ID_LENGTH)
    verb = models.CharField(max_length=40)
    subject = models.CharField(max_length=80)
    previous = models.CharField(max_length=64)
    entry = models.CharField(max_length=64)
