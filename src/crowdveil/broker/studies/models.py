"""Studies and the public log of their definitions."""

from __future__ import annotations

import json

from django.db import models

from crowdveil.broker.clock import today
from crowdveil.broker.identity.models import Account
from crowdveil.broker.ids import ID_LENGTH, random_id

STATES = ("draft", "pilot", "open", "closed", "published")


class Study(models.Model):
    """A draft until it is piloted or opened; from then on its definition never changes."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    owner = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="studies")
    owner_id: str
    state = models.CharField(max_length=9, default="draft", choices=[(state, state) for state in STATES])
    draft = models.TextField()
    definition = models.TextField(blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    signature = models.CharField(max_length=128, blank=True)
    # Salt and truths of the gold questions, committed to in the definition and revealed when published.
    gold = models.TextField(blank=True)
    identifying = models.TextField(blank=True)
    # How many chosen workers the requester wants in all (null: all places), and the batch the last choice knew of.
    group_size = models.IntegerField(null=True)
    batch_chosen_by = models.IntegerField(default=0)
    # Whether study.filled was announced: once per study, whichever process sees it first.
    filled_announced = models.BooleanField(default=False)
    created = models.DateField(default=today)

    @property
    def title(self) -> str:
        return str(json.loads(self.draft)["title"])


class LogEntry(models.Model):
    """One line of the public log: every definition that was ever opened, each line naming the one before."""

    index = models.IntegerField(primary_key=True)
    study = models.CharField(max_length=ID_LENGTH, unique=True)
    sha256 = models.CharField(max_length=64)
    day = models.DateField(default=today)
    previous = models.CharField(max_length=64)
    entry = models.CharField(max_length=64)


class Invitation(models.Model):
    """A worker whom the broker chose for a study; `asked` is the round in which."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="invitations")
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="invitations")
    asked = models.IntegerField(default=1)
    expires = models.DateTimeField()
    accepted = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "account"], name="one_invitation_per_study")]
