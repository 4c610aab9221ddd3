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

# From so many on the worker's app shows a list to choose from (MOST_BUTTONS of its questions).
_MOST_BUTTONS = 12
_domain: TypeAdapter[Any] = TypeAdapter(AnyDomain)


@require_POST
@page("requester")
def preview(request: HttpRequest) -> HttpResponse:
    form = base.posted(request.POST)
    return render(request, "console/preview.html", {"previews": previews(form)})


def previews(form: dict[str, Any]) -> list[dict[str, Any]]:
    """Text and controls of each question; one that makes no sense yet says so."""
    return [
        {
            "text": question["text"],
            "type": question["type"],
            "depends": question["show_if"],
            "always_reports": form["protects_participation"],
        }
        | _controls(question)
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
    return {"kind": "radio" if domain.size <= _MOST_BUTTONS else "select", "options": list(domain.symbols)}
