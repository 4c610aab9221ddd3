"""Making accounts: workers sign themselves up without a name, operators invite the others."""

from __future__ import annotations

import secrets

from django.contrib.auth.hashers import make_password
from django.db import IntegrityError

from crowdveil.broker.audit_log.chain import record
from crowdveil.broker.db.transactions import write_transaction
from crowdveil.broker.identity.models import Account, Source, Token
from crowdveil.broker.ledger import budget, reservations
from crowdveil.broker.ledger.models import Budget, OneByOne, Spend
from crowdveil.broker.problems import Refusal
from crowdveil.broker.webhooks.models import Webhook


def sign_up_worker(default_level: str, epsilon_cap: int) -> Account:
    with write_transaction():
        account = Account.objects.create(role="worker", default_level=default_level)
        budget.create(account.id, epsilon_cap)
    return account


def invite(name: str, role: str, *, by: str) -> tuple[Account, str]:
    """A requester or operator account with a one-time password, shown once."""
    password = secrets.token_urlsafe(12)
    # Asked first, although the table would refuse a second one: PostgreSQL writes what it refuses into its log.
    if Account.objects.filter(name=name).exists():
        raise Refusal("invalid", f"the name {name!r} is taken; choose another")
    try:
        with write_transaction():
            account = Account.objects.create(
                role=role, name=name, password=make_password(password), one_time_password=True
            )
            record(by or account.id, f"account.invite-{role}", account.id)
    except IntegrityError:
        raise Refusal("invalid", f"the name {name!r} is taken; choose another") from None
    return account, password


def reset(account: Account, *, by: str) -> str:
    """A new one-time password for somebody who lost the old one or the authenticator; sessions and tokens end."""
    password = secrets.token_urlsafe(12)
    with write_transaction():
        Account.objects.filter(id=account.id).update(
            password=make_password(password),
            one_time_password=True,
            totp_secret="",
            totp_confirmed=False,
            failed_sign_ins=0,
            locked_until=None,
        )
        Token.objects.filter(account=account).delete()
        Source.objects.filter(account=account).delete()
        record(by, "account.reset", account.id)
    return password


def set_disabled(account: Account, *, disabled: bool, by: str) -> None:
    with write_transaction():
        Account.objects.filter(id=account.id).update(disabled=disabled)
        if disabled:
            Token.objects.filter(account=account).delete()
            Webhook.objects.filter(owner=account).delete()
        record(by, "account.disable" if disabled else "account.enable", account.id)


def erase_worker(account: str) -> None:
    """Everything that names the worker goes; reports go by their withdrawal keys, earned money stays payable.

    The budget goes first: a submission on its way holds that row, so it is either whole before this or refused after.
    """
    with write_transaction():
        Budget.objects.filter(account=account).delete()
        reservations.release_holds(account)
        Spend.objects.filter(account=account).delete()
        OneByOne.objects.filter(account=account).delete()
        Account.objects.filter(id=account, role="worker").delete()
