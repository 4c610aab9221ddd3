"""Results: estimates with their intervals, a chart and its numbers, and what protected those who answered."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from crowdveil.broker.console.charts import needle_chart, shares_chart
from crowdveil.broker.console.door import page
from crowdveil.broker.refusal import Refusal
from crowdveil.broker.results import export
from crowdveil.broker.results.batches import latest, refresh
from crowdveil.broker.results.quality import quality
from crowdveil.broker.studies.models import Study
from crowdveil.broker.studies.views import own_study, view

_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json", "parquet": "application/vnd.apache.parquet"}


@require_GET
@page("requester")
def results(request: HttpRequest, study: str) -> HttpResponse:
    """The latest batch; below the minimum nothing is shown, and the page says so."""
    found = own_study(request.account.id, study)  # type: ignore[attr-defined]
    shown: dict[str, Any] = {"study": view(found), "exports": _exports(found)}
    try:
        refresh(found)
        batch = latest(found)
        shown |= {"results": batch, "questions": _drawn(batch, found), "quality": _quality(found)}
    except Refusal as refusal:
        if refusal.code != "below-minimum":
            raise
        shown["waiting"] = refusal.detail
    return render(request, "console/results.html", shown)


def _drawn(batch: dict[str, Any], study: Study) -> list[dict[str, Any]]:
    """Each question with its text, its chart and how it was estimated."""
    asked = {question["id"]: question for question in json.loads(study.draft)["questions"]}
    drawn = []
    for part in batch["parts"]:
        for question in part["questions"]:
            domain = asked[question["question"]]["domain"]
            row = question | {"text": asked[question["question"]]["text"], "part": part, "type": domain["type"]}
            if question["shares"]:
                row["shares_chart"] = shares_chart(question["shares"])
            elif isinstance(question["value"], int | float) and domain["type"] == "scale":
                row["needle"] = needle_chart(question["value"], question["low"], question["high"], domain)
            drawn.append(row)
    order = list(asked)
    return sorted(drawn, key=lambda row: order.index(row["question"]))


def _exports(study: Study) -> list[dict[str, Any]]:
    return export.listed(study) if study.state in ("closed", "published") else []


def _quality(study: Study) -> dict[str, Any] | None:
    try:
        return quality(study) if json.loads(study.draft)["linkable"] else None
    except Refusal:
        return None


@require_GET
@page("requester")
def download(request: HttpRequest, study: str, part: int, kind: str) -> HttpResponse | StreamingHttpResponse:
    """One file of reports, streamed; `channels` is what goes beside a CSV file."""
    found = own_study(request.account.id, study)  # type: ignore[attr-defined]
    if kind == "channels":
        response: HttpResponse | StreamingHttpResponse = JsonResponse(export.channels(found, part))
        name = f"reports-{part}.csv.channels.json"
    elif kind in _TYPES:
        response = StreamingHttpResponse(export.stream(found, part, kind), content_type=_TYPES[kind])
        name = f"reports-{part}.{kind}"
    else:
        raise Refusal("not-found", "there is nothing at this address")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
