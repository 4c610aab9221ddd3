"""Signing in with a password and a code; a one-time password only opens the door to enrolment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.contrib.auth.hashers import check_password, make_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from crowdveil.broker import clock
from crowdveil.broker.audit_log.chain import record
from crowdveil.broker.db.transactions import changed, write
from crowdveil.broker.identity import attempts, totp, totp_secrets
from crowdveil.broker.identity.models import Account, Token
from crowdveil.broker.identity.tokens import issue
from crowdveil.broker.problems import Refusal

# Compared when the name is unknown, so that the time taken does not tell which names exist.
_NOBODY = "!"


@dataclass(frozen=True, slots=True)
class Session:
    """A token and what it opens."""

    token: str
    expires: datetime
    role: str
    enrol: bool


def sign_in(name: str, password: str, code: str | None, *, network: str) -> Session:
    """A session token, or an enrolment token after a one-time password."""
    account = authenticate(name, password, code, network=network)
    enrol = account.one_time_password or not account.totp_confirmed
    scope = "enrol" if enrol else account.role
    expires = clock.after(minutes=15) if enrol else clock.after(hours=settings.SESSION_TOKEN_HOURS)
    with write():
        text, _ = issue(account, scope=scope, expires=expires, label="session")
        record(account.id, "sign-in", account.id)
    return Session(text, expires, account.role, enrol)


def authenticate(name: str, password: str, code: str | None, *, network: str) -> Account:
    """The account behind a name, password and code; every failure looks the same."""
    account = Account.objects.filter(name=name).exclude(role="worker").first()
    may_try = account is not None and not account.disabled and attempts.may_try(account, network)
    right = check_password(password, account.password if account and may_try else _NOBODY)
    if account is None or not may_try or not right:
        raise _refused()
    if not (account.one_time_password or not account.totp_confirmed or _code_fits(account, code)):
        raise _refused()
    attempts.succeeded(account, network)
    return account


def _code_fits(account: Account, code: str | None) -> bool:
    at, secret = clock.now().timestamp(), totp_secrets.decrypt(account.id, account.totp_secret)
    step = secret and totp.matching_step(secret, code or "", after=account.totp_step, at=at)
    if not step:
        return False
    # Only the first of two requests with the same code moves the step.
    use = "UPDATE identity_account SET totp_step = %s WHERE id = %s AND (totp_step < %s OR totp_step > %s)"
    return changed(use, step, account.id, step, totp.step_at(at) + totp.MAX_STEPS_AHEAD) == 1


def _refused() -> Refusal:
    return Refusal("unauthorized", "name, password or code is wrong, or the account is locked; wait and try again")


def enrol(account: Account, new_password: str) -> str:
    """Set the lasting password and return the secret for the authenticator app."""
    try:
        validate_password(new_password, account)  # type: ignore[arg-type]  # any object with a name will do
    except ValidationError as error:
        raise Refusal("invalid", " ".join(error.messages)) from None
    if check_password(new_password, account.password):
        raise Refusal("invalid", "choose another password than the one-time password")
    secret = totp.new_secret()
    Account.objects.filter(id=account.id).update(
        password=make_password(new_password),
        totp_secret=totp_secrets.encrypt(account.id, secret),
        totp_confirmed=False,
        totp_step=0,
    )
    return secret


def confirm(account: Account, code: str) -> None:
    """The authenticator works: from now on sign-in needs its codes, and the one-time password is dead."""
    if not account.totp_secret or not _code_fits(account, code):
        raise Refusal("invalid", "this code does not fit; check the clock of your device and try the next one")
    with write():
        Account.objects.filter(id=account.id).update(totp_confirmed=True, one_time_password=False)
        Token.objects.filter(account=account, scope="enrol").delete()
        record(account.id, "account.enrol", account.id)
