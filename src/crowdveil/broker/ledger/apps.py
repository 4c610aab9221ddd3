"""The Django app of this store."""

from django.apps import AppConfig


class LedgerConfig(AppConfig):
    name = "crowdveil.broker.ledger"
    label = "ledger"
