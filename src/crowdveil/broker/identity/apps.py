"""The Django app of this store."""

from django.apps import AppConfig


class IdentityConfig(AppConfig):
    name = "crowdveil.broker.identity"
    label = "identity"
