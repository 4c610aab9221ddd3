"""Who may call what: a bearer token with the right scope, within its rate."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from ninja.security import HttpBearer

from crowdveil.broker.identity.models import Account
from crowdveil.broker.identity.tokens import Bearer, bearer_of, renewing_bearer_of
from crowdveil.broker.middleware.rate_limit import limit
from crowdveil.broker.problems import Refusal


class Authorized(HttpRequest):
    """A request whose token was found good."""

    auth: Bearer


class Scoped(HttpBearer):
    """Anonymous is 401, a token of another scope 403."""

    def __init__(self, *scopes: str, find: Callable[[str], Bearer | None] = bearer_of) -> None:
        super().__init__()
        self._scopes, self._find = scopes, find

    def authenticate(self, request: HttpRequest, token: str) -> Bearer | None:
        bearer = self._find(token) if len(token) < 200 else None
        if bearer is None:
            return None
        limit(f"token {bearer.token}", settings.RATE_LIMIT)
        if bearer.scope not in self._scopes:
            raise Refusal("forbidden", f"this is for a {' or '.join(self._scopes)}; your token is for {bearer.scope}")
        return bearer


worker = Scoped("worker")
renewing_worker = Scoped("worker", find=renewing_bearer_of)
requester = Scoped("requester")
operator = Scoped("operator")
staff = Scoped("requester", "operator")
enrolling = Scoped("enrol")


def account_of(request: Authorized) -> Account:
    account = Account.objects.filter(id=request.auth.account).first()
    if account is None:
        raise Refusal("unauthorized", "this account no longer exists")
    return account
