"""The Django app of this store."""

from django.apps import AppConfig


class IntakeConfig(AppConfig):
    name = "crowdveil.broker.submissions"
    label = "intake"
