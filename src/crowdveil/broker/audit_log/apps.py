"""The Django app of this store."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "crowdveil.broker.audit_log"
    label = "audit"
