"""Requesters and operators: signing in, enrolling, and tokens for their programs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja import Router

from crowdveil.broker import clock
from crowdveil.broker.api import auth
from crowdveil.broker.api.schemas.common import Key
from crowdveil.broker.api.schemas.staff import (
    Confirm,
    Enrol,
    Enrolment,
    NewStaffToken,
    SignedIn,
    SignIn,
    StaffAccount,
)
from crowdveil.broker.api.schemas.worker import IssuedToken, TokenList
from crowdveil.broker.identity import sign_in as signing
from crowdveil.broker.identity import totp
from crowdveil.broker.identity.models import Token
from crowdveil.broker.identity.tokens import issue
from crowdveil.broker.middleware.rate_limit import client_network, limit_address
from crowdveil.broker.problems import Refusal

router = Router(tags=["account"])


@router.post("/sessions", response={201: SignedIn}, operation_id="sign_in")
def sign_in(request: HttpRequest, payload: SignIn) -> tuple[int, dict[str, Any]]:
    """A session token; after a one-time password, a token that is good for enrolment only."""
    limit_address(request, "sign-in", settings.SIGN_UP_LIMIT)
    session = signing.sign_in(payload.name, payload.password, payload.code, network=client_network(request))
    return 201, {
        "token": session.token,
        "expires": clock.iso(session.expires),
        "role": session.role,
        "enrol": session.enrol,
    }


@router.delete("/sessions/current", auth=auth.staff, response={204: None}, operation_id="sign_out")
def sign_out(request: auth.Authorized) -> tuple[int, None]:
    """The token of this request is worth nothing from now on."""
    Token.objects.filter(id=request.auth.token).delete()
    return 204, None


@router.post("/account/enrolment", auth=auth.enrolling, response={200: Enrolment}, operation_id="enrol")
def enrol(request: auth.Authorized, payload: Enrol) -> dict[str, Any]:
    """Choose a password and get the secret for an authenticator app."""
    account = auth.read_account(request)
    secret = signing.enrol(account, payload.new_password)
    return {"totp_secret": secret, "totp_uri": totp.uri(secret, account.name or "")}


@router.post(
    "/account/enrolment/confirmation",
    auth=auth.enrolling,
    response={204: None},
    operation_id="confirm_enrolment",
)
def confirm_enrolment(request: auth.Authorized, payload: Confirm) -> tuple[int, None]:
    """Show that the authenticator works; then sign in with password and code."""
    signing.confirm(auth.read_account(request), payload.code)
    return 204, None


@router.get("/account", auth=auth.staff, response={200: StaffAccount}, operation_id="read_account")
def read_account(request: auth.Authorized) -> dict[str, Any]:
    """Who you are."""
    account = auth.read_account(request)
    return {"id": account.id, "name": account.name, "role": account.role}


@router.get("/account/tokens", auth=auth.staff, response={200: TokenList}, operation_id="list_tokens")
def list_tokens(request: auth.Authorized) -> dict[str, Any]:
    """Your tokens and sessions, without their texts."""
    tokens = Token.objects.filter(account_id=request.auth.account).order_by("id")
    return {"items": [{"id": each.id, "label": each.label, "expires": clock.iso(each.expires)} for each in tokens]}


@router.post("/account/tokens", auth=auth.staff, response={201: IssuedToken}, operation_id="make_token")
def make_token(request: auth.Authorized, payload: NewStaffToken) -> tuple[int, dict[str, Any]]:
    """A token for a program, with the same scope as this one."""
    expires = clock.after(days=payload.days)
    text, token = issue(auth.read_account(request), scope=request.auth.scope, expires=expires, label=payload.label)
    return 201, {"id": token.id, "token": text, "expires": clock.iso(expires)}


@router.delete("/account/tokens/{token}", auth=auth.staff, response={204: None}, operation_id="revoke_token")
def revoke_token(request: auth.Authorized, token: str = Key) -> tuple[int, None]:
    """End a token."""
    removed, _ = Token.objects.filter(id=token, account_id=request.auth.account).delete()
    if not removed:
        raise Refusal("not-found", "you have no such token")
    return 204, None
