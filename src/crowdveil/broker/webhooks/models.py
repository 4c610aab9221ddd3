"""Where requesters want to be told, and what is still to be told."""

from __future__ import annotations

from django.db import models

from crowdveil.broker.clock import now
from crowdveil.broker.identity.models import Account
from crowdveil.broker.ids import ID_LENGTH, random_id


class Webhook(models.Model):
    """An address of a requester's own, with the secret that signs what is sent there."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    owner = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=500)
    events = models.CharField(max_length=200)
    secret = models.CharField(max_length=64)


class Notice(models.Model):
    """A notice that waits to be delivered; removed once delivered or given up."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="notices")
    body = models.TextField()
    attempts = models.IntegerField(default=0)
    due = models.DateTimeField(default=now)
