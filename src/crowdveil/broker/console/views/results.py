"""Results: estimates with their intervals, a chart and its numbers, and what protected those who answered."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from crowdveil.broker.console.access import ConsoleRequest, console_view
from crowdveil.broker.console.presenters import reading
from crowdveil.broker.console.privacy_statement import protection
from crowdveil.broker.console.views.labels import labels_page
from crowdveil.broker.pools.task_list import is_pool
from crowdveil.broker.problems import Refusal
from crowdveil.broker.results import export
from crowdveil.broker.results.batches import latest, refresh
from crowdveil.broker.results.quality import quality
from crowdveil.broker.studies.definition import read_definition
from crowdveil.broker.studies.models import Study
from crowdveil.broker.studies.requester_serializers import own_study, progress, view


@require_GET
@console_view("requester")
def results(request: ConsoleRequest, study: str) -> HttpResponse:
    """The latest batch; below the minimum nothing is shown, and the page says so.

    While the study runs the page asks again; nothing new is answered with nothing, so that nothing flickers, whatever
    is unfolded stays so and the focus stays where it is.
    """
    found = own_study(request.account.id, study)
    if is_pool(study):
        return labels_page(request, found)
    refresh(found)
    counts = progress(found)
    seen = f"{found.state}-{counts['n_batches'] or -counts['taken']}"
    if request.GET.get("seen") == seen:
        return HttpResponse(status=204)
    running = found.state in ("pilot", "open")
    shown: dict[str, Any] = {"progress": counts, "seen": seen, "running": running, "exports": _exports(found)}
    return render(request, "console/results.html", shown | {"study": view(found)} | _load_results(found))


def _load_results(study: Study) -> dict[str, Any]:
    try:
        batch = latest(study)
    except Refusal as refusal:
        if refusal.code != "below-minimum":
            raise
        return {"waiting": refusal.detail}
    privacy = protection(read_definition(study.definition, study.sha256), batch)
    questions = _read(batch, study)
    return {
        "results": batch,
        "questions": questions,
        "vague": not all(question["tells"] for question in questions),
        "goal": json.loads(study.draft)["goal"],
        "quality": _quality(study),
        "privacy": privacy,
    }


def _read(batch: dict[str, Any], study: Study) -> list[dict[str, Any]]:
    """Every question in the order of the study."""
    draft = json.loads(study.draft)
    asked = {question["id"]: question for question in draft["questions"]}
    found = [
        reading(result, asked[result["question"]], part, draft["goal"])
        for part in batch["parts"]
        for result in part["questions"]
    ]
    order = list(asked)
    return sorted(found, key=lambda row: order.index(row["question"]))


def _exports(study: Study) -> list[dict[str, Any]]:
    """The files of a closed study; none below the minimum, where nothing may leave."""
    try:
        return export.list_exports(study) if study.state in ("closed", "published") else []
    except Refusal:
        return []


def _quality(study: Study) -> dict[str, Any] | None:
    """Only where workers agreed to be linked, and only from the minimum on."""
    try:
        return quality(study) if json.loads(study.draft)["linkable"] else None
    except Refusal:
        return None


@require_GET
@console_view("requester")
def download(request: ConsoleRequest, study: str, part: int, kind: str) -> HttpResponse | StreamingHttpResponse:
    """One file of reports, streamed; `channels` is what goes beside a CSV file."""
    found = own_study(request.account.id, study)
    if kind == "channels":
        response: HttpResponse | StreamingHttpResponse = JsonResponse(export.channels(found, part))
        name = f"reports-{part}.csv.channels.json"
    elif kind in export.TYPES:
        response = StreamingHttpResponse(export.stream(found, part, kind), content_type=export.TYPES[kind])
        name = f"reports-{part}.{kind}"
    else:
        raise Refusal("not-found", "there is nothing at this address")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
