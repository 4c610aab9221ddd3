"""Bearer tokens: random, hashed at rest, scoped, expiring."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime

from crowdveil.broker import clock
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
    found = row(_FIND, digest(text))
    if found is None:
        return None
    token, scope, expires, account, role, payee, disabled = found
    if disabled or clock.moment(expires) <= clock.now():
        return None
    return Bearer(token, scope, account, role, payee)


def forget_expired() -> int:
    removed, _ = Token.objects.filter(expires__lte=clock.now()).delete()
    return int(removed)
