"""The labels of a pool: a table with the least certain first, how far the pool is, and files."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from crowdveil.broker.console.access import ConsoleRequest, console_view
from crowdveil.broker.pools import label_files
from crowdveil.broker.pools.task_list import is_pool
from crowdveil.broker.pools.updates import read_labels
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.models import Study
from crowdveil.broker.studies.requester_serializers import own_study, view

PAGE_SIZE = 50


def labels_page(request: ConsoleRequest, study: Study) -> HttpResponse:
    """One page of the newest labels; before enough workers came nothing is shown, and the page says so."""
    first = request.GET.get("after", "0")
    after = int(first) if first.isdecimal() and len(first) < 7 else 0
    shown: dict[str, Any] = {"study": view(study), "kinds": list(label_files.TYPES)}
    shown["previous"] = max(0, after - PAGE_SIZE) if after else None
    try:
        shown["labels"] = read_labels(study, order="least-certain", after=after, limit=PAGE_SIZE)
    except Refusal as refusal:
        if refusal.code != "below-minimum":
            raise
        shown["waiting"] = refusal.fields.get("minimum_n", 0)
    return render(request, "console/labels.html", shown)


@require_GET
@console_view("requester")
def download(request: ConsoleRequest, study: str, kind: str) -> StreamingHttpResponse:
    """All labels as a file, streamed."""
    found = own_study(request.account.id, study)
    if kind not in label_files.TYPES or not is_pool(study):
        raise Refusal("not-found", "there is nothing at this address")
    response = StreamingHttpResponse(label_files.stream_labels(found, kind), content_type=label_files.TYPES[kind])
    response["Content-Disposition"] = f'attachment; filename="labels.{kind}"'
    return response
