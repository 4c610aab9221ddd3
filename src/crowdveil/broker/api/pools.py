"""Task pools: a requester's task list and labels, and a worker's batches."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Header, Query, Router

from crowdveil.broker import clock
from crowdveil.broker.api import auth
from crowdveil.broker.api.schemas.common import Key
from crowdveil.broker.api.schemas.pools import (
    BatchReceipt,
    CommitUpload,
    Labels,
    LeaseRequest,
    LeaseView,
    PublishedLabels,
    SubmitBatch,
    TaskList,
    TaskPart,
    Upload,
)
from crowdveil.broker.api.submissions import IDEMPOTENCY_KEY, chosen_level
from crowdveil.broker.ledger import budget
from crowdveil.broker.ledger.models import Budget
from crowdveil.broker.pools import label_files, leases, task_list
from crowdveil.broker.pools.submit import BatchParcel, read_reports, submit_batch
from crowdveil.broker.pools.updates import published_labels, read_labels
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.definition import DefinitionLevel
from crowdveil.broker.studies.definition_cache import FrozenStudy, get_frozen_study
from crowdveil.broker.studies.lifecycle import read_draft
from crowdveil.broker.studies.requester_serializers import own_study
from crowdveil.broker.studies.serializers import public_study
from crowdveil.broker.submissions.pseudonyms import pseudonym_in
from crowdveil.broker.submissions.submit import Submitter

public_router = Router(tags=["public"])
requester_router = Router(tags=["requester"], auth=auth.requester)
worker_router = Router(tags=["worker"], auth=auth.worker)


@public_router.get("/studies/{study}/labels", response={200: PublishedLabels}, operation_id="read_published_labels")
def read_published_labels(
    request: HttpRequest,
    study: str = Key,
    after: int = Query(0, ge=0, le=10**6, description="The `next` of the page before."),
    limit: int = Query(50, ge=1, le=1000),
) -> dict[str, Any]:
    """The labels of a published pool, page by page."""
    found = public_study(study)
    _must_be_pool(study)
    return published_labels(found, after=after, limit=limit)


@requester_router.post("/studies/{study}/uploads", response={201: Upload}, operation_id="start_upload")
def start_upload(request: auth.Authorized, study: str = Key) -> tuple[int, dict[str, Any]]:
    """Begin to upload a task list; the draft keeps its list until the new one is committed."""
    return 201, {"upload": task_list.start_upload(own_study(request.auth.account, study))}


@requester_router.put("/studies/{study}/uploads/{upload}", response={204: None}, operation_id="upload_tasks")
def upload_tasks(request: auth.Authorized, payload: TaskPart, study: str = Key, upload: str = Key) -> tuple[int, None]:
    """A part of the list, in place of what stood there; the same part may be sent again."""
    found = own_study(request.auth.account, study)
    task_list.put_part(found, read_draft(found), upload, payload.first, payload.tasks, payload.assignments)
    return 204, None


@requester_router.post(
    "/studies/{study}/uploads/{upload}/commit", response={200: TaskList}, operation_id="commit_upload"
)
def commit_upload(
    request: auth.Authorized, payload: CommitUpload, study: str = Key, upload: str = Key
) -> dict[str, Any]:
    """Check the uploaded list whole and make it the list of the draft."""
    found = own_study(request.auth.account, study)
    pool = task_list.commit_upload(found, read_draft(found), upload, payload.n_tasks)
    return {"n_tasks": pool.n_tasks, "tasks_root": pool.root}


@requester_router.get("/studies/{study}/labels", response={200: Labels}, operation_id="read_labels")
def list_labels(
    request: auth.Authorized,
    study: str = Key,
    order: Literal["least-certain", "task"] = Query("least-certain"),
    below: float | None = Query(None, ge=0, le=1, description="Only labels of a smaller probability."),
    after: int = Query(0, ge=0, le=10**6, description="The `next` of the page before."),
    limit: int = Query(50, ge=1, le=1000),
) -> dict[str, Any]:
    """The newest labels of a pool, page by page."""
    found = own_study(request.auth.account, study)
    _must_be_pool(study)
    return read_labels(found, order=order, after=after, limit=limit, below=below)


@requester_router.get("/studies/{study}/labels/file", response={200: Any}, operation_id="download_labels")
def download_labels(
    request: auth.Authorized, study: str = Key, format: Literal["csv", "jsonl", "parquet"] = Query("csv")
) -> StreamingHttpResponse:
    """All labels of the newest update as a file, streamed."""
    found = own_study(request.auth.account, study)
    _must_be_pool(study)
    response = StreamingHttpResponse(label_files.stream_labels(found, format), content_type=label_files.TYPES[format])
    response["Content-Disposition"] = f'attachment; filename="labels.{format}"'
    return response


def _must_be_pool(study: str) -> None:
    if not task_list.is_pool(study):
        raise Refusal("wrong-state", "this study is a survey and has results, not labels")


@worker_router.post("/studies/{study}/batches", response={200: LeaseView, 201: LeaseView}, operation_id="lease_batch")
def lease_batch(request: auth.Authorized, payload: LeaseRequest, study: str = Key) -> tuple[int, dict[str, Any]]:
    """Lease a batch of tasks, or get the one that is open, with more time."""
    found = get_frozen_study(study)
    level = chosen_level(found.opened, payload.study_sha256, payload.level)
    batch, new = leases.lease_batch(
        request.auth.account,
        found,
        level,
        code=payload.worker_code,
        one_by_one=payload.accounting == "one-by-one",
    )
    return 201 if new else 200, _lease_view(request.auth.account, found, level, batch)


@worker_router.delete("/studies/{study}/batches/{batch}", response={204: None}, operation_id="give_batch_back")
def give_batch_back(request: auth.Authorized, study: str = Key, batch: str = Key) -> tuple[int, None]:
    """Give a batch back: its tasks go to others and never come back to you."""
    leases.give_back(request.auth.account, get_frozen_study(study), batch)
    return 204, None


@worker_router.put("/studies/{study}/batches/{batch}", response={200: LeaseView}, operation_id="renew_batch")
def renew_batch(request: auth.Authorized, payload: LeaseRequest, study: str = Key, batch: str = Key) -> dict[str, Any]:
    """More time for an open batch; do it before charging."""
    found = get_frozen_study(study)
    level = chosen_level(found.opened, payload.study_sha256, payload.level)
    leases.pool_rules(found.opened)
    leased = leases.find_batch(study, pseudonym_in(found, request.auth.account), batch)
    if leased is None or leased.level != level.number:
        raise Refusal("not-found", "no such batch is leased to you at this level")
    one_by_one = payload.accounting == "one-by-one"
    if one_by_one:
        leases.check_one_by_one(found.opened, level)
    renewed = leases.renew(request.auth.account, found, level, leased, one_by_one=one_by_one)
    return _lease_view(request.auth.account, found, level, renewed)


@worker_router.post(
    "/studies/{study}/batches/{batch}/submission",
    response={200: BatchReceipt, 201: BatchReceipt},
    operation_id="submit_batch",
)
def submit_reports(
    request: auth.Authorized,
    payload: SubmitBatch,
    study: str = Key,
    batch: str = Key,
    idempotency_key: str = Header(..., alias="Idempotency-Key", pattern=rf"^{IDEMPOTENCY_KEY}$"),
) -> tuple[int, dict[str, Any]]:
    """Hand in the reports of a batch: one charge, one receipt, one withdrawal key. A retry gets the same receipt."""
    found = get_frozen_study(study)
    level = chosen_level(found.opened, payload.study_sha256, payload.level)
    if payload.consent_version != found.opened.document["consent"]["version"]:
        raise Refusal("wrong-consent", "the consent text has another version; read it and agree again")
    parcel = BatchParcel(
        found,
        level,
        batch,
        read_reports(level, payload.channel, payload.reports),
        payload.accounting == "one-by-one",
        payload.withdrawal_sha256,
        idempotency_key,
    )
    receipt, new = submit_batch(Submitter(request.auth.account, request.auth.payee), parcel)
    return 201 if new else 200, receipt


def _lease_view(account: str, study: FrozenStudy, level: DefinitionLevel, batch: leases.LeasedBatch) -> dict[str, Any]:
    n = len(batch.tasks)
    charge = {"epsilon_nano": level.epsilon[0] * n, "rho_nano": level.rho[0] * n, "reports": n}
    return {
        "batch": batch.id,
        "study": study.id,
        "level": level.name,
        "pay_cents": leases.batch_pay(study.opened, level, n),
        "charge": charge if level.protected else None,
        "expires": clock.iso(batch.expires),
        "tasks": task_list.read_tasks(study.id, batch.tasks),
        "budget": budget.serialize_budget(Budget.objects.get(account=account)),
    }
