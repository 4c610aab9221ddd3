"""The questions of a form as a worker will see them, refreshed while the requester types."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST
from pydantic import TypeAdapter, ValidationError

from crowdveil.broker.console.access import page
from crowdveil.broker.console.forms import base
from crowdveil.broker.console.forms.study_form import domain_of
from crowdveil.broker.studies.questions import AnyDomain
from crowdveil.errors import InputError

_MOST_RADIOS = 11
_domain: TypeAdapter[Any] = TypeAdapter(AnyDomain)


@require_POST
@page("requester")
def preview(request: HttpRequest) -> HttpResponse:
    form = base.posted(request.POST)
    return render(request, "console/preview.html", {"previews": previews(form)})


def previews(form: dict[str, Any]) -> list[dict[str, Any]]:
    """Text and controls of each question; one that makes no sense yet says so."""
    return [
        {"text": question["text"], "type": question["type"], "depends": question["show_if"]} | _controls(question)
        for question in form["questions"]
    ]


def _controls(question: dict[str, Any]) -> dict[str, Any]:
    spelled = domain_of(question)
    try:
        domain = _domain.validate_python(spelled).domain()
    except (ValidationError, InputError):
        return {"unfinished": True}
    if spelled["type"] == "tick-all":
        return {"kind": "checkbox", "options": spelled["boxes"]}
    if domain.size > _MOST_RADIOS and spelled["type"] == "scale":
        return {"kind": "number"} | {name: spelled[name] for name in ("low", "high", "step")}
    return {"kind": "radio", "options": list(domain.symbols)}
