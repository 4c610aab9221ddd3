"""The operator's pages: accounts, warnings, checks, the audit log and payouts."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from crowdveil.broker.api.operator import download_payout, list_warnings
from crowdveil.broker.audit_log import chain
from crowdveil.broker.audit_log.models import Act
from crowdveil.broker.console.access import Visit, page
from crowdveil.broker.identity.accounts import invite, reset, set_disabled
from crowdveil.broker.identity.models import Account
from crowdveil.broker.ledger.check import problems
from crowdveil.broker.payments.models import PayoutBatch
from crowdveil.broker.payments.payouts import pay_out
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.models import LogEntry, Study

_LONGEST_NAME = 80


@require_GET
@page("operator")
def overview(request: HttpRequest) -> HttpResponse:
    return render(request, "console/operator.html", _overview(request))


def _overview(request: HttpRequest) -> dict[str, Any]:
    acts = list(Act.objects.order_by("-index")[:50])
    return {
        "accounts": Account.objects.exclude(role="worker").order_by("name"),
        "n_workers": Account.objects.filter(role="worker").count(),
        "studies": _public_studies(),
        "warnings": list_warnings(request)["items"],
        "ledger_problems": problems(),
        "acts": [chain.spelled(act) for act in acts],
        "broken_at": chain.first_broken(),
        "payouts": PayoutBatch.objects.order_by("-day")[:20],
    }


def _public_studies() -> list[dict[str, Any]]:
    """Newest first, in the order of the public log."""
    opened = list(LogEntry.objects.order_by("-index")[:100])
    studies = Study.objects.select_related("owner").in_bulk([entry.study for entry in opened])
    return [
        {"id": each.id, "title": each.title, "owner": each.owner.name, "state": each.state, "opened": entry.day}
        for entry in opened
        if (each := studies.get(entry.study)) is not None
    ]


@require_POST
@page("operator")
def invite_somebody(request: Visit) -> HttpResponse:
    """The one-time password is shown once, on this page."""
    by = request.account.id
    role = request.POST.get("role", "requester")
    if role not in ("requester", "operator"):
        raise Refusal("invalid", "a role is requester or operator")
    name = request.POST.get("name", "").strip()
    if not 0 < len(name) <= _LONGEST_NAME:
        raise Refusal("invalid", f"a name must have 1 to {_LONGEST_NAME} characters; got {len(name)}")
    account, password = invite(name, role, by=by)
    return render(request, "console/operator.html", _overview(request) | {"invited": account, "password": password})


@require_POST
@page("operator")
def change_account(request: Visit, account: str) -> HttpResponse:
    by = request.account.id
    found = _changeable(account, by)
    set_disabled(found, disabled=not found.disabled, by=by)
    return HttpResponseRedirect("/console/operator")


@require_POST
@page("operator")
def reset_account(request: Visit, account: str) -> HttpResponse:
    """For who lost the password or the authenticator: a new one-time password, shown once."""
    by = request.account.id
    found = _changeable(account, by)
    shown = {"invited": found, "password": reset(found, by=by)}
    return render(request, "console/operator.html", _overview(request) | shown)


def _changeable(account: str, by: str) -> Account:
    found = Account.objects.filter(id=account).exclude(role="worker").first()
    if found is None or found.id == by:
        raise Refusal("wrong-state", "this account cannot be changed here")
    return found


@require_POST
@page("operator")
def make_payout(request: Visit) -> HttpResponse:
    pay_out(request.account.id)
    return HttpResponseRedirect("/console/operator")


@require_GET
@page("operator")
def payout_file(request: HttpRequest, batch: str) -> HttpResponse:
    response = download_payout(request, batch)
    response["Content-Disposition"] = f'attachment; filename="payout-{batch}.csv"'
    return response
