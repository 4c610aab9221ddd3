"""The Django app of this store."""

from django.apps import AppConfig


class StudiesConfig(AppConfig):
    name = "crowdveil.broker.studies"
    label = "studies"
