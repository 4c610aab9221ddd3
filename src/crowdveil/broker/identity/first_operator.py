"""What the first start creates: an operator with a one-time password, printed once."""

from __future__ import annotations

from django.db import connections

from crowdveil.broker.identity.accounts import invite
from crowdveil.broker.identity.models import Account


def first_operator() -> str | None:
    """The one-time password of a new operator, or None when there is an operator already."""
    if Account.objects.filter(role="operator").exists():
        return None
    _, password = invite("operator", "operator", by="")
    connections.close_all()
    return password
