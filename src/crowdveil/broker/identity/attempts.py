"""Counting sign-in attempts where they come from, so that guessing at somebody's account does not lock its owner out.

Every attempt is counted before anything is compared, in one statement: many guesses at once are not more guesses. A
network has ten, then a pause. All networks together from which the account never signed in have fifty an hour: a
crowd of guessers closes the door to strangers, and the owner still comes in where the owner came in before.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Case, DateTimeField, F, Q, Value, When

from crowdveil.broker import clock, clock_guard
from crowdveil.broker.identity.models import Account, Source

PER_NETWORK, PAUSE = 10, timedelta(minutes=15)
FROM_STRANGERS, STRANGERS_PAUSE = 50, timedelta(hours=1)
_FAMILIAR, _STRANGE = timedelta(days=90), timedelta(days=1)


def may_try(account: Account, network: str) -> bool:
    """Count one attempt; False: too many came before it."""
    source = Source.objects.filter(account=account, digest=_digest(account, network))
    if not source.filter(familiar=True, expires__gt=clock.now()).exists():
        if not _counted(Account.objects.filter(id=account.id), FROM_STRANGERS, STRANGERS_PAUSE):
            return False
        new = Source(account=account, digest=_digest(account, network), expires=clock.now() + _STRANGE)
        Source.objects.bulk_create([new], ignore_conflicts=True)
    return _counted(source, PER_NETWORK, PAUSE)


def succeeded(account: Account, network: str) -> None:
    """The right password and code came from this network: it is familiar from now on."""
    Source.objects.filter(account=account, digest=_digest(account, network)).update(
        failed_sign_ins=0, locked_until=None, familiar=True, expires=clock.now() + _FAMILIAR
    )
    Account.objects.filter(id=account.id).update(failed_sign_ins=0, locked_until=None)


def forget_sources() -> int:
    if not clock_guard.is_trusted():
        return 0
    removed, _ = Source.objects.filter(expires__lte=clock.now()).delete()
    return int(removed)


def _counted(rows: Any, most: int, pause: timedelta) -> bool:
    now = clock.now()
    last = Q(failed_sign_ins__gte=most - 1)
    until = Value(now + pause, output_field=DateTimeField())
    # A lock that lasts longer than any pause was set by a clock that was ahead.
    free = Q(locked_until=None) | Q(locked_until__lte=now) | Q(locked_until__gt=now + pause)
    counted = rows.filter(free).update(
        failed_sign_ins=Case(When(last, then=Value(0)), default=F("failed_sign_ins") + 1),
        locked_until=Case(When(last, then=until), default=None, output_field=DateTimeField()),
    )
    return int(counted) == 1


def _digest(account: Account, network: str) -> str:
    key = f"sign-in source {settings.SECRET_KEY}".encode()
    return hmac.new(key, f"{account.id} {network}".encode(), hashlib.sha256).hexdigest()
