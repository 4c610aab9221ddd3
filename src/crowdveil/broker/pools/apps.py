"""The Django app of this store."""

from django.apps import AppConfig


class PoolsConfig(AppConfig):
    name = "crowdveil.broker.pools"
    label = "pools"
