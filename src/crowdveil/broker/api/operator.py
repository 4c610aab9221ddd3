"""Running a broker: accounts, the audit log, checks and payouts."""

from __future__ import annotations

import csv
import io
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from crowdveil.broker.api import auth
from crowdveil.broker.api.pagination import After, Limit, page
from crowdveil.broker.api.schemas.common import Key, Page
from crowdveil.broker.api.schemas.staff import (
    AccountLine,
    AuditPage,
    ChangeAccount,
    Invited,
    LedgerCheck,
    NewAccount,
    PayoutLine,
    Warnings,
)
from crowdveil.broker.audit_log import chain
from crowdveil.broker.audit_log.models import Act
from crowdveil.broker.identity.accounts import invite, reset, set_disabled
from crowdveil.broker.identity.models import Account
from crowdveil.broker.ledger.check import problems
from crowdveil.broker.payments.models import Payout, PayoutBatch
from crowdveil.broker.payments.payouts import pay_out
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.models import Study
from crowdveil.broker.studies.quasi_identifiers import warnings_about

router = Router(tags=["operator"], auth=auth.operator)


@router.get("/accounts", response={200: Page[AccountLine]}, operation_id="list_accounts")
def list_accounts(request: HttpRequest, after: str = After, limit: int = Limit) -> dict[str, Any]:
    """Requesters and operators; workers have no names to list."""
    return page(Account.objects.exclude(role="worker"), after, limit, _account)


@router.post("/accounts", response={201: Invited}, operation_id="invite_account")
def invite_account(request: auth.Authorized, payload: NewAccount) -> tuple[int, dict[str, Any]]:
    """A new requester or operator, with a one-time password that is shown once."""
    account, password = invite(payload.name, payload.role, by=request.auth.account)
    return 201, {"id": account.id, "name": account.name, "role": account.role, "one_time_password": password}


@router.patch("/accounts/{account}", response={200: AccountLine}, operation_id="change_account")
def change_account(request: auth.Authorized, payload: ChangeAccount, account: str = Key) -> dict[str, Any]:
    """Disable an account and end its tokens, or enable it again."""
    target = Account.objects.filter(id=account).exclude(role="worker").first()
    if target is None:
        raise Refusal("not-found", "there is no such account")
    if target.id == request.auth.account:
        raise Refusal("wrong-state", "you cannot disable yourself; ask another operator")
    set_disabled(target, disabled=payload.disabled, by=request.auth.account)
    target.refresh_from_db()
    return _account(target)


@router.post("/accounts/{account}/resets", response={201: Invited}, operation_id="reset_account")
def reset_account(request: auth.Authorized, account: str = Key) -> tuple[int, dict[str, Any]]:
    """A new one-time password for somebody who lost the old one or the authenticator."""
    target = Account.objects.filter(id=account).exclude(role="worker").first()
    if target is None:
        raise Refusal("not-found", "there is no such account")
    password = reset(target, by=request.auth.account)
    return 201, {"id": target.id, "name": target.name, "role": target.role, "one_time_password": password}


@router.get("/audit", response={200: AuditPage}, operation_id="read_audit")
def read_audit(
    request: HttpRequest, after: int = Query(0, ge=0, le=2**31 - 1), limit: int = Query(100, ge=1, le=1000)
) -> dict[str, Any]:
    """The audit log, and where its chain is broken if it is."""
    acts = list(Act.objects.filter(index__gt=after).order_by("index")[: limit + 1])
    more = len(acts) > limit
    return {
        "items": [chain.serialize_act(act) for act in acts[:limit]],
        "next": acts[limit - 1].index if more else None,
        "broken_at": chain.first_broken(),
    }


@router.get("/ledger-check", response={200: LedgerCheck}, operation_id="check_ledger")
def check_ledger(request: HttpRequest) -> dict[str, Any]:
    """Whether all sums agree: spends, holds, money, places."""
    faults = problems()
    return {"holds": not faults, "problems": faults}


@router.get("/warnings", response={200: Warnings}, operation_id="list_warnings")
def list_warnings(request: HttpRequest) -> dict[str, Any]:
    """Requesters whose studies together ask for what tells people apart."""
    items = []
    for account in Account.objects.filter(role="requester").order_by("id"):
        studies = list(Study.objects.filter(owner=account).exclude(state="draft").values_list("id", flat=True))
        items += [
            {"requester": account.name, "sentence": sentence, "studies": studies}
            for sentence in warnings_about(account)
        ]
    return {"items": items}


@router.get("/payouts", response={200: Page[PayoutLine]}, operation_id="list_payouts")
def list_payouts(request: HttpRequest, after: str = After, limit: int = Limit) -> dict[str, Any]:
    """Payout batches."""
    return page(PayoutBatch.objects.all(), after, limit, _payout)


@router.post("/payouts", response={201: PayoutLine}, operation_id="pay_out")
def make_payout(request: auth.Authorized) -> tuple[int, dict[str, Any]]:
    """Turn everything owed into one payout per payee."""
    return 201, _payout(pay_out(request.auth.account))


@router.get("/payouts/{batch}", operation_id="download_payout", response={200: Any})
def download_payout(request: HttpRequest, batch: str = Key) -> HttpResponse:
    """The batch as CSV: payee code and total, nothing about studies."""
    if not PayoutBatch.objects.filter(id=batch).exists():
        raise Refusal("not-found", "there is no such payout batch")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["payee", "cents"])
    writer.writerows(Payout.objects.filter(batch_id=batch).order_by("payee").values_list("payee", "cents"))
    return HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")


def _account(account: Account) -> dict[str, Any]:
    return {
        "id": account.id,
        "name": account.name,
        "role": account.role,
        "disabled": account.disabled,
        "enrolled": account.totp_confirmed,
        "joined": account.joined.isoformat(),
    }


def _payout(batch: PayoutBatch) -> dict[str, Any]:
    return {
        "id": batch.id,
        "day": batch.day.isoformat(),
        "cents": batch.cents,
        "n_payees": Payout.objects.filter(batch=batch).count(),
    }
