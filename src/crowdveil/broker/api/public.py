"""What anybody may see: this broker's key, the public log, open studies and their signed definitions."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router

from crowdveil import __version__
from crowdveil.broker import keys
from crowdveil.broker.api.pagination import After, Limit, page
from crowdveil.broker.api.schemas.common import Card, Info, Key, Log, Page, SignedStudy, Withdraw, Withdrawn
from crowdveil.broker.middleware.rate_limit import limit_address
from crowdveil.broker.pools.closing import withdraw_batch
from crowdveil.broker.pools.task_list import is_pool, refuse_pool_results
from crowdveil.broker.results.batches import published
from crowdveil.broker.results.schemas import Results
from crowdveil.broker.studies import public_log
from crowdveil.broker.studies.models import LogEntry, Study
from crowdveil.broker.studies.serializers import card, public_study, signed
from crowdveil.broker.submissions.withdraw import withdraw

router = Router(tags=["public"])


@router.get("/", response={200: Info}, operation_id="info")
def info(request: HttpRequest) -> dict[str, Any]:
    """Which broker this is."""
    return {
        "name": "crowdveil",
        "version": __version__,
        "public_key": keys.public_key(),
        "demo": settings.DEMO,
        "delta": settings.DELTA,
        "currency": settings.CURRENCY,
    }


@router.get("/log", response={200: Log}, operation_id="read_log")
def read_log(
    request: HttpRequest, after: int = Query(0, ge=0, le=2**31 - 1), limit: int = Query(100, ge=1, le=1000)
) -> dict[str, Any]:
    """Every definition that was ever opened, in order."""
    found = list(LogEntry.objects.filter(index__gt=after).order_by("index")[: limit + 1])
    last = LogEntry.objects.order_by("-index").first()
    more = len(found) > limit
    return {
        "items": [public_log.spelled(entry) for entry in found[:limit]],
        "next": found[limit - 1].index if more else None,
        "head": last.entry if last else public_log.GENESIS,
    }


@router.get("/studies", response={200: Page[Card]}, operation_id="list_studies")
def list_studies(request: HttpRequest, after: str = After, limit: int = Limit) -> dict[str, Any]:
    """Studies that can be answered."""
    return page(Study.objects.filter(state__in=("pilot", "open")).select_related("owner"), after, limit, card)


@router.get("/studies/{study}", response={200: SignedStudy}, operation_id="read_study")
def read_study(request: HttpRequest, study: str = Key) -> dict[str, Any]:
    """The signed definition of a study."""
    return signed(public_study(study))


@router.get("/studies/{study}/results", response={200: Results}, operation_id="read_published_results")
def read_published_results(request: HttpRequest, study: str = Key) -> dict[str, Any]:
    """The estimates of a published study."""
    found = public_study(study)
    refuse_pool_results(study)
    return published(found)


@router.post("/studies/{study}/withdrawals", response={200: Withdrawn}, operation_id="withdraw")
def withdraw_submission(request: HttpRequest, payload: Withdraw, study: str = Key) -> dict[str, Any]:
    """Erase a submission by the key that only its device holds."""
    limit_address(request, "withdraw", settings.RATE_LIMIT)
    found = public_study(study).id
    (withdraw_batch if is_pool(found) else withdraw)(found, payload.withdrawal_key)
    return {"withdrawn": True, "study": study}
