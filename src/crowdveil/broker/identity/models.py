"""Accounts, tokens and consents; nothing here names a report or a pseudonym."""

from __future__ import annotations

from django.db import models

from crowdveil.broker.clock import today
from crowdveil.broker.ids import ID_LENGTH, random_id

ROLES = ("worker", "requester", "operator")


class Account(models.Model):
    """A worker (no name, no password: the device holds a token), a requester or an operator."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    role = models.CharField(max_length=9, choices=[(role, role) for role in ROLES])
    name = models.CharField(max_length=80, unique=True, null=True)
    password = models.CharField(max_length=200, blank=True)
    one_time_password = models.BooleanField(default=False)
    # Encrypted: totp_secrets.
    totp_secret = models.CharField(max_length=128, blank=True)
    totp_confirmed = models.BooleanField(default=False)
    # The last time step whose code was used: a code seen once is worth nothing.
    totp_step = models.BigIntegerField(default=0)
    # Both about networks that the account never signed in from; familiar ones count for themselves.
    failed_sign_ins = models.IntegerField(default=0)
    locked_until = models.DateTimeField(null=True)
    disabled = models.BooleanField(default=False)
    default_level = models.CharField(max_length=6, default="medium")
    # The name under which the payments store knows this worker.
    payee = models.CharField(max_length=ID_LENGTH, default=random_id, unique=True)
    joined = models.DateField(default=today)


class Source(models.Model):
    """A network from which somebody tried to sign in as a requester or operator; workers have nothing to guess.

    `digest` is keyed and made for one account: it names no address, and one network of two accounts gives two.
    """

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="sources")
    digest = models.CharField(max_length=64)
    failed_sign_ins = models.IntegerField(default=0)
    locked_until = models.DateTimeField(null=True)
    # The account signed in from here before: what others try from elsewhere does not lock this door.
    familiar = models.BooleanField(default=False)
    expires = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["account", "digest"], name="one_source_per_account")]


class Token(models.Model):
    """A bearer token: only its SHA-256 is kept."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="tokens")
    digest = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=9)
    label = models.CharField(max_length=80, blank=True)
    expires = models.DateTimeField()


class Consent(models.Model):
    """Which version of a study's consent text a worker agreed to."""

    id = models.CharField(max_length=ID_LENGTH, primary_key=True, default=random_id, editable=False)
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="consents")
    study = models.CharField(max_length=ID_LENGTH)
    version = models.IntegerField()
    day = models.DateField(default=today)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["account", "study"], name="one_consent_per_study")]
