"""The Django app of this store."""

from django.apps import AppConfig


class ResultsConfig(AppConfig):
    name = "crowdveil.broker.results"
    label = "results"
