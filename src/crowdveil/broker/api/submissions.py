"""Answering: which studies a worker may answer, accepting one, and handing in its reports."""

from __future__ import annotations

from typing import Any, Literal

from ninja import Header, Query, Router

from crowdveil.broker import clock
from crowdveil.broker.api import auth
from crowdveil.broker.api.schemas.common import Key, Page, Receipt, Reservation, Reserve, Submit, WorkerCard
from crowdveil.broker.identity.tokens import Bearer
from crowdveil.broker.ledger import budget, reservations
from crowdveil.broker.ledger.models import Budget
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.candidate_pool import decline
from crowdveil.broker.studies.definition import Definition, DefinitionLevel
from crowdveil.broker.studies.definition_cache import get_frozen_study
from crowdveil.broker.studies.eligibility import cards_for, check_invited
from crowdveil.broker.submissions.submit import Submitter, ValidatedSubmission, submit
from crowdveil.broker.submissions.validation import check

router = Router(tags=["worker"], auth=auth.worker)
_LATE = "a submission after this time is checked again and may be refused unpaid"
IDEMPOTENCY_KEY = "[A-Za-z0-9_-]{16,64}"


@router.get("/workers/me/studies", response={200: Page[WorkerCard]}, operation_id="list_my_studies")
def list_my_studies(request: auth.Authorized, kind: Literal["survey", "tasks"] = Query("survey")) -> dict[str, Any]:
    """What you may answer, and what you have answered: surveys, or pools of tasks."""
    return {"items": cards_for(request.auth.account, kind), "next": None}


@router.put("/studies/{study}/reservation", response={200: Reservation, 201: Reservation}, operation_id="reserve")
def reserve(request: auth.Authorized, payload: Reserve, study: str = Key) -> tuple[int, dict[str, Any]]:
    """Accept a study: money, a place and ε are held for you until the time given."""
    frozen_study = get_frozen_study(study)
    _refuse_pool(frozen_study.opened)
    level = chosen_level(frozen_study.opened, payload.study_sha256, payload.level)
    check_invited(frozen_study, request.auth.account)
    hold, new = reservations.reserve(request.auth.account, frozen_study.opened, level)
    return 201 if new else 200, _serialize_hold(request.auth.account, study, level, hold)


@router.get("/studies/{study}/reservation", response={200: Reservation}, operation_id="read_reservation")
def read_reservation(request: auth.Authorized, study: str = Key) -> dict[str, Any]:
    """What is held for you."""
    hold = reservations.find(study, request.auth.account)
    if hold is None:
        raise Refusal("not-found", "nothing is held for you in this study")
    return _serialize_hold(request.auth.account, study, get_frozen_study(study).opened.levels[hold.level], hold)


@router.delete("/studies/{study}/reservation", response={204: None}, operation_id="cancel_reservation")
def cancel_reservation(request: auth.Authorized, study: str = Key) -> tuple[int, None]:
    """Give the study back. What your device has drawn stays charged there."""
    if not reservations.cancel(study, request.auth.account):
        raise Refusal("not-found", "nothing is held for you in this study")
    decline(study, request.auth.account)
    return 204, None


@router.post("/studies/{study}/submissions", response={200: Receipt, 201: Receipt}, operation_id="submit")
def submit_reports(
    request: auth.Authorized,
    payload: Submit,
    study: str = Key,
    idempotency_key: str = Header(..., alias="Idempotency-Key", pattern=rf"^{IDEMPOTENCY_KEY}$"),
) -> tuple[int, dict[str, Any]]:
    """Hand in all reports at once: stored whole, or refused whole. A retry gets the same receipt."""
    return received(request.auth, study, payload, idempotency_key)


def received(bearer: Bearer, study: str, payload: Submit, idempotency_key: str) -> tuple[int, dict[str, Any]]:
    """Check a submission against the frozen definition and store it: the status and the receipt."""
    found = get_frozen_study(study)
    definition = found.opened
    _refuse_pool(definition)
    level = chosen_level(definition, payload.study_sha256, payload.level)
    if payload.consent_version != definition.document["consent"]["version"]:
        raise Refusal("wrong-consent", "the consent text has another version; read it and agree again")
    check_invited(found, bearer.account)
    parcel = ValidatedSubmission(
        found,
        level,
        check(definition, level, payload.reports),
        payload.withdrawal_sha256,
        idempotency_key,
    )
    receipt, new = submit(Submitter(bearer.account, bearer.payee), parcel)
    return 201 if new else 200, receipt.to_json()


def _refuse_pool(definition: Definition) -> None:
    if "pool" in definition.document:
        raise Refusal("wrong-state", "this study is a pool of tasks; lease a batch of it")


def chosen_level(definition: Definition, sha256: str, name: str) -> DefinitionLevel:
    if sha256 != definition.sha256:
        raise Refusal(
            "wrong-study-hash",
            "your definition of this study is not the one in the public log; fetch and check it again",
            sha256=definition.sha256,
        )
    if name not in definition.levels:
        raise Refusal("invalid", f"this study has the levels {', '.join(definition.levels)}; got {name}")
    return definition.levels[name]


def _serialize_hold(account: str, study: str, level: DefinitionLevel, hold: reservations.Hold) -> dict[str, Any]:
    return {
        "study": study,
        "level": level.name,
        "pay_cents": level.pay_cents,
        "charge": level.charge,
        "expires": clock.iso(hold.expires),
        "late": _LATE,
        "budget": budget.serialize_budget(Budget.objects.get(account=account)),
    }
