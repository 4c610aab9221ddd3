"""A worker's own account: sign-up without a name, budget mirror, spends, pay, devices, erasure."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja import Router

from crowdveil.broker import clock
from crowdveil.broker.api import auth
from crowdveil.broker.api.pagination import After, Limit, page
from crowdveil.broker.api.schemas.common import Key, Page
from crowdveil.broker.api.schemas.worker import (
    ChangeSelf,
    Everything,
    IssuedToken,
    NewToken,
    Self,
    SignedUp,
    SignUp,
    SpendLine,
    Statement,
    TokenList,
)
from crowdveil.broker.identity.accounts import erase_worker, sign_up_worker
from crowdveil.broker.identity.models import Account, Consent, Token
from crowdveil.broker.identity.tokens import issue
from crowdveil.broker.ledger import budget
from crowdveil.broker.ledger.models import Budget, OneByOne, Reservation, Spend
from crowdveil.broker.middleware.rate_limit import limit_address
from crowdveil.broker.payments.earnings import statement
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.models import Study

router = Router(tags=["worker"])


@router.post("", response={201: SignedUp}, operation_id="sign_up")
def sign_up(request: HttpRequest, payload: SignUp) -> tuple[int, dict[str, Any]]:
    """Become a worker. No name, no address: the token in your device is the account."""
    limit_address(request, "sign-up", settings.SIGN_UP_LIMIT)
    cap = settings.DEFAULT_EPSILON_CAP_NANO if payload.epsilon_cap_nano is None else payload.epsilon_cap_nano
    account = sign_up_worker(payload.default_level, cap)
    expires = clock.after(days=settings.WORKER_TOKEN_DAYS)
    text, _ = issue(account, scope="worker", expires=expires, label="first device")
    mine = _self(account)
    return 201, {**mine, "token": text, "expires": clock.iso(expires)}


@router.get("/me", auth=auth.worker, response={200: Self}, operation_id="read_self")
def read_self(request: auth.Authorized) -> dict[str, Any]:
    """Your account and the broker's mirror of your budget."""
    return _self(auth.account_of(request))


@router.patch("/me", auth=auth.worker, response={200: Self}, operation_id="change_self")
def change_self(request: auth.Authorized, payload: ChangeSelf) -> dict[str, Any]:
    """Change your default level or your cap: only you can."""
    account = auth.account_of(request)
    if payload.default_level is not None:
        Account.objects.filter(id=account.id).update(default_level=payload.default_level)
    if payload.epsilon_cap_nano is not None:
        budget.set_cap(account.id, payload.epsilon_cap_nano)
    return _self(auth.account_of(request))


@router.delete("/me", auth=auth.worker, response={204: None}, operation_id="erase_self")
def erase_self(request: auth.Authorized) -> tuple[int, None]:
    """Erase your account. Use your withdrawal keys first if your reports shall go, too."""
    erase_worker(request.auth.account)
    return 204, None


@router.get("/me/ledger", auth=auth.worker, response={200: Page[SpendLine]}, operation_id="read_ledger")
def read_ledger(request: auth.Authorized, after: str = After, limit: int = Limit) -> dict[str, Any]:
    """Every spend, the unprotected ones listed beside."""
    return page(Spend.objects.filter(account=request.auth.account), after, limit, _spend)


@router.get("/me/payments", auth=auth.worker, response={200: Statement}, operation_id="read_payments")
def read_payments(request: auth.Authorized) -> dict[str, Any]:
    """What you earned and what was paid out."""
    return statement(request.auth.payee)


@router.get("/me/tokens", auth=auth.worker, response={200: TokenList}, operation_id="list_devices")
def list_devices(request: auth.Authorized) -> dict[str, Any]:
    """Your devices."""
    return {"items": _tokens(request.auth.account)}


@router.post("/me/tokens", auth=auth.renewing_worker, response={201: IssuedToken}, operation_id="add_device")
def add_device(request: auth.Authorized, payload: NewToken) -> tuple[int, dict[str, Any]]:
    """A token for a second device, or a fresh one in place of one that expires or expired up to a year ago."""
    expires = clock.after(days=settings.WORKER_TOKEN_DAYS)
    text, token = issue(auth.account_of(request), scope="worker", expires=expires, label=payload.label)
    return 201, {"id": token.id, "token": text, "expires": clock.iso(expires)}


@router.delete("/me/tokens/{token}", auth=auth.worker, response={204: None}, operation_id="drop_device")
def drop_device(request: auth.Authorized, token: str = Key) -> tuple[int, None]:
    """A device that is lost can no longer speak for you."""
    removed, _ = Token.objects.filter(id=token, account_id=request.auth.account).delete()
    if not removed:
        raise Refusal("not-found", "you have no such device")
    return 204, None


@router.get("/me/export", auth=auth.worker, response={200: Everything}, operation_id="export_self")
def export_self(request: auth.Authorized) -> dict[str, Any]:
    """All that the broker holds about you."""
    account = auth.account_of(request)
    mine = _self(account)
    held = Reservation.objects.filter(account=account.id)
    return {
        "account": {name: mine[name] for name in ("id", "default_level", "joined")},
        "budget": mine["budget"],
        "ledger": [_spend(spend) for spend in Spend.objects.filter(account=account.id).order_by("id")],
        "one_by_one": [
            {"study": line.study, "level": line.level, "epsilon_nano": line.epsilon, "count": line.count}
            for line in OneByOne.objects.filter(account=account.id).order_by("id")
        ],
        "consents": [
            {"study": consent.study, "version": consent.version, "day": consent.day.isoformat()}
            for consent in Consent.objects.filter(account=account)
        ],
        "reservations": [
            {"study": each.study, "level": each.level, "expires": clock.iso(each.expires)} for each in held
        ],
        "payments": statement(account.payee),
        "tokens": _tokens(account.id),
    }


def _self(account: Account) -> dict[str, Any]:
    mine = Budget.objects.get(account=account.id)
    return {
        "id": account.id,
        "default_level": account.default_level,
        "budget": budget.spelled(mine),
        "joined": account.joined.isoformat(),
    }


def _spend(spend: Spend) -> dict[str, Any]:
    study = Study.objects.filter(id=spend.study).first()
    return {
        "study": spend.study,
        "title": study.title if study else "",
        "level": spend.level,
        "protected": spend.epsilon is not None,
        "epsilon_nano": spend.epsilon,
        "rho_nano": spend.rho,
        "day": spend.day.isoformat(),
    }


def _tokens(account: str) -> list[dict[str, Any]]:
    found = Token.objects.filter(account_id=account, scope="worker").order_by("id")
    return [{"id": token.id, "label": token.label, "expires": clock.iso(token.expires)} for token in found]
