"""The Django app of this store."""

from django.apps import AppConfig


class HooksConfig(AppConfig):
    name = "crowdveil.broker.webhooks"
    label = "hooks"
