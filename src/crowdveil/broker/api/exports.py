"""Downloads of a closed study's reports, in the files that `crowdveil infer` reads."""

from __future__ import annotations

from typing import Any, Literal

from django.http import StreamingHttpResponse
from ninja import Path, Query, Router

from crowdveil.broker.api import auth
from crowdveil.broker.api.schemas.common import Key
from crowdveil.broker.api.schemas.staff import ExportParts
from crowdveil.broker.results import export
from crowdveil.broker.studies.requester_serializers import own_study

router = Router(tags=["requester"], auth=auth.requester)
Number = Path(..., ge=0, le=200)


@router.get("/studies/{study}/exports", response={200: ExportParts}, operation_id="list_exports")
def list_exports(request: auth.Authorized, study: str = Key) -> dict[str, Any]:
    """The files there are: one per domain, because a table of reports has one."""
    return {"parts": export.list_exports(own_study(request.auth.account, study))}


@router.get("/studies/{study}/exports/{part}", response={200: Any}, operation_id="download_export")
def download_export(
    request: auth.Authorized,
    study: str = Key,
    part: int = Number,
    format: Literal["csv", "parquet", "json"] = Query("csv"),
) -> StreamingHttpResponse:
    """One file, in no order, streamed."""
    owned_study = own_study(request.auth.account, study)
    stream = export.stream(owned_study, part, format)
    response = StreamingHttpResponse(stream, content_type=export.TYPES[format])
    response["Content-Disposition"] = f'attachment; filename="reports-{part}.{format}"'
    return response


@router.get("/studies/{study}/exports/{part}/channels", response={200: dict[str, Any]}, operation_id="read_channels")
def read_channels(request: auth.Authorized, study: str = Key, part: int = Number) -> dict[str, Any]:
    """The channels that go beside a CSV or JSON file."""
    return export.channels(own_study(request.auth.account, study), part)
