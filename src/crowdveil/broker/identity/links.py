"""Links that sign somebody in once, as `crowdveil serve --demo` prints one."""

from __future__ import annotations

from crowdveil.broker import clock
from crowdveil.broker.identity.models import Account, Token
from crowdveil.broker.identity.tokens import find_bearer, issue


def issue_link(account: Account, *, minutes: int = 60) -> str:
    """The text that the link carries; it works once."""
    text, _ = issue(account, scope="link", expires=clock.after(minutes=minutes), label="one-time link")
    return text


def redeem(text: str) -> Account | None:
    """Whom the link signs in; None when it is unknown, expired or used."""
    bearer = find_bearer(text)
    if bearer is None or bearer.scope != "link":
        return None
    # Of two requests with the same link exactly one removes the row.
    removed, _ = Token.objects.filter(id=bearer.token).delete()
    return Account.objects.filter(id=bearer.account).first() if removed else None
