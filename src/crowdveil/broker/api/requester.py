"""A requester's studies: draft, pilot, open, follow, close, publish."""

from __future__ import annotations

from typing import Any

from ninja import Router

from crowdveil.broker.api import auth
from crowdveil.broker.api.pagination import After, Limit, page
from crowdveil.broker.api.schemas.common import Key, Page
from crowdveil.broker.api.schemas.staff import AddMoney, Progress, Quality, Select, Selected, StudyView
from crowdveil.broker.pools.task_list import refuse_pool_results
from crowdveil.broker.results.batches import latest, refresh
from crowdveil.broker.results.quality import quality
from crowdveil.broker.results.schemas import Results
from crowdveil.broker.studies import lifecycle
from crowdveil.broker.studies.draft import Draft
from crowdveil.broker.studies.models import Study
from crowdveil.broker.studies.requester_serializers import own_study, progress, view
from crowdveil.broker.studies.selection import choose

router = Router(tags=["requester"], auth=auth.requester)


@router.post("/studies", response={201: StudyView}, operation_id="create_study")
def create_study(request: auth.Authorized, payload: Draft) -> tuple[int, dict[str, Any]]:
    """Start a draft."""
    return 201, view(lifecycle.create(auth.read_account(request), payload))


@router.get("/studies", response={200: Page[StudyView]}, operation_id="list_own_studies")
def list_own_studies(request: auth.Authorized, after: str = After, limit: int = Limit) -> dict[str, Any]:
    """Your studies."""
    return page(Study.objects.filter(owner_id=request.auth.account).select_related("owner"), after, limit, view)


@router.get("/studies/{study}", response={200: StudyView}, operation_id="read_own_study")
def read_own_study(request: auth.Authorized, study: str = Key) -> dict[str, Any]:
    """One study, with what each level promises."""
    return view(own_study(request.auth.account, study))


@router.put("/studies/{study}", response={200: StudyView}, operation_id="revise_study")
def revise_study(request: auth.Authorized, payload: Draft, study: str = Key) -> dict[str, Any]:
    """Change a draft."""
    return view(lifecycle.revise(own_study(request.auth.account, study), payload))


@router.delete("/studies/{study}", response={204: None}, operation_id="discard_study")
def discard_study(request: auth.Authorized, study: str = Key) -> tuple[int, None]:
    """Throw a draft away."""
    lifecycle.discard(own_study(request.auth.account, study))
    return 204, None


@router.post("/studies/{study}/copies", response={201: StudyView}, operation_id="copy_study")
def copy_study(request: auth.Authorized, study: str = Key) -> tuple[int, dict[str, Any]]:
    """A new draft like this study."""
    return 201, view(lifecycle.copy(own_study(request.auth.account, study)))


@router.post("/studies/{study}/pilot", response={200: StudyView}, operation_id="pilot_study")
def pilot_study(request: auth.Authorized, study: str = Key) -> dict[str, Any]:
    """Freeze the definition and let a few answer."""
    return view(lifecycle.start_pilot(own_study(request.auth.account, study)))


@router.post("/studies/{study}/open", response={200: StudyView}, operation_id="open_study")
def open_study(request: auth.Authorized, study: str = Key) -> dict[str, Any]:
    """Freeze the definition if it is not yet, sign and publish it, and let everybody answer."""
    return view(lifecycle.start(own_study(request.auth.account, study)))


@router.post("/studies/{study}/close", response={200: StudyView}, operation_id="close_study")
def close_study(request: auth.Authorized, study: str = Key) -> dict[str, Any]:
    """End the intake and destroy the key that links reports to workers."""
    return view(lifecycle.close(own_study(request.auth.account, study)))


@router.post("/studies/{study}/publish", response={200: StudyView}, operation_id="publish_study")
def publish_study(request: auth.Authorized, study: str = Key) -> dict[str, Any]:
    """Show the estimates to everybody."""
    return view(lifecycle.publish(own_study(request.auth.account, study)))


@router.post("/studies/{study}/budget", response={200: StudyView}, operation_id="add_money")
def add_money(request: auth.Authorized, payload: AddMoney, study: str = Key) -> dict[str, Any]:
    """Add money to a running study."""
    return view(lifecycle.add_money(own_study(request.auth.account, study), payload.add_cents))


@router.get("/studies/{study}/progress", response={200: Progress}, operation_id="read_progress")
def read_progress(request: auth.Authorized, study: str = Key) -> dict[str, Any]:
    """Places and money."""
    return progress(own_study(request.auth.account, study))


@router.get("/studies/{study}/results", response={200: Results}, operation_id="read_results")
def read_results(request: auth.Authorized, study: str = Key) -> dict[str, Any]:
    """The latest batch of estimates."""
    owned_study = own_study(request.auth.account, study)
    refuse_pool_results(study)
    refresh(owned_study)
    return latest(owned_study)


@router.get("/studies/{study}/quality", response={200: Quality}, operation_id="read_quality")
def read_quality(request: auth.Authorized, study: str = Key) -> dict[str, Any]:
    """How well workers of a linkable study do."""
    return quality(own_study(request.auth.account, study))


@router.post("/studies/{study}/selection", response={200: Selected}, operation_id="choose_workers")
def choose_workers(request: auth.Authorized, payload: Select, study: str = Key) -> dict[str, Any]:
    """Choose workers, or refine the choice by who has answered since."""
    return choose(own_study(request.auth.account, study), n=payload.n)
