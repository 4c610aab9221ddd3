"""Bearer tokens: random, hashed at rest, scoped, expiring."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from crowdveil.broker import clock, clock_guard
from crowdveil.broker.db.transactions import row
from crowdveil.broker.identity.models import Account, Token

_FIND = """
SELECT t.id, t.scope, t.expires, a.id, a.role, a.payee, a.disabled
FROM identity_token t JOIN identity_account a ON a.id = t.account_id WHERE t.digest = %s
"""


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who holds the token of this request, and what it is good for."""

    token: str
    scope: str
    account: str
    role: str
    payee: str


def issue(account: Account, *, scope: str, expires: datetime, label: str = "") -> tuple[str, Token]:
    """A new token: its text is shown once, only its hash is kept."""
    text = f"cv_{scope}_{secrets.token_urlsafe(32)}"
    token = Token.objects.create(account=account, digest=digest(text), scope=scope, expires=expires, label=label)
    return text, token


def digest(text: str) -> str:
    # Tokens carry 256 random bits, so a fast hash is enough.
    return hashlib.sha256(text.encode()).hexdigest()


def bearer_of(text: str) -> Bearer | None:
    """Whose token this is; None when unknown, expired or of a disabled account."""
    match _find(text):
        case bearer, expires if expires > clock.now():
            return bearer
    return None


def renewing_bearer_of(text: str) -> Bearer | None:
    """Whose token this is, an expired one of a worker included: it is good for fetching a fresh one, until forgotten.

    A worker has no name and no password; without this a year's absence, or a clock that was wrong, ends the account.
    """
    match _find(text):
        case bearer, expires if bearer.scope == "worker" or expires > clock.now():
            return bearer
    return None


def _find(text: str) -> tuple[Bearer, datetime] | None:
    match row(_FIND, digest(text)):
        case token, scope, expires, account, role, payee, disabled if not disabled:
            return Bearer(token, scope, account, role, payee), clock.moment(expires)
    return None


def forget_expired() -> int:
    """Forget tokens that can no longer be used, those of workers once they can no longer be renewed."""
    if not clock_guard.is_trusted():
        return 0
    now = clock.now()
    renewable = Q(scope="worker", expires__gt=now - timedelta(days=settings.WORKER_TOKEN_DAYS))
    removed, _ = Token.objects.filter(expires__lte=now).exclude(renewable).delete()
    return int(removed)
