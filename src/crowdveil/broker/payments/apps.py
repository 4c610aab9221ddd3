"""The Django app of this store."""

from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    name = "crowdveil.broker.payments"
    label = "payments"
