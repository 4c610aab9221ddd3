"""A requester's studies: list, build, follow, open and close."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from crowdveil.broker.console.access import Visit, page
from crowdveil.broker.console.forms import base
from crowdveil.broker.console.forms.study_form import from_draft, to_draft
from crowdveil.broker.console.i18n.formatting import epsilon_words
from crowdveil.broker.console.plan_preview import planned
from crowdveil.broker.console.views.preview import previews
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies import lifecycle
from crowdveil.broker.studies.models import Study
from crowdveil.broker.studies.requester_serializers import own_study, progress, view
from crowdveil.broker.studies.selection import choose
from crowdveil.mechanisms import MECHANISMS

_ACTIONS = {
    "pilot": lifecycle.start_pilot,
    "open": lifecycle.start,
    "close": lifecycle.close,
    "publish": lifecycle.publish,
    "copy": lifecycle.copy,
}


@require_GET
@page("requester", "operator")
def home(request: Visit) -> HttpResponse:
    """Everything of mine; operators have a page of their own."""
    if request.scope == "operator":
        return HttpResponseRedirect("/console/operator")
    account = request.account
    studies = Study.objects.filter(owner=account).select_related("owner").order_by("-id")
    rows = [{"id": study.id, "title": study.title, **progress(study)} for study in studies]
    return render(request, "console/home.html", {"studies": rows})


@require_http_methods(["GET", "HEAD", "POST"])
@page("requester")
def edit(request: Visit, study: str = "") -> HttpResponse:
    """Build a study; adding and removing questions works without scripts."""
    found = own_study(request.account.id, study) if study else None
    if request.method != "POST":
        form = from_draft(json.loads(found.draft)) if found else base.blank()
        return _editor(request, form, found)
    form = base.posted(request.POST)
    if _changed_questions(request, form) or "preview" in request.POST:
        return _editor(request, form, found)
    if "plan" in request.POST:
        return _editor(request, form, found, plan=planned(form))
    try:
        draft = to_draft(form)
        saved = lifecycle.revise(found, draft) if found else lifecycle.create(request.account, draft)
    except Refusal as refusal:
        return _editor(request, form, found, refusal)
    return HttpResponseRedirect(f"/console/studies/{saved.id}")


def _changed_questions(request: HttpRequest, form: dict[str, Any]) -> bool:
    """A button that adds or removes a question was pressed."""
    kind, gone = request.POST.get("add"), base.place_of(request.POST.get("remove", ""))
    if kind in base.KINDS and len(form["questions"]) < base.MAX_QUESTIONS:
        used = {question["id"] for question in form["questions"]}
        number = next(n for n in range(1, 1000) if f"q{n}" not in used)
        form["questions"].append(base.new_question(kind, number))
    elif gone is not None and gone < len(form["questions"]):
        del form["questions"][gone]
    else:
        return False
    return True


def _editor(
    request: HttpRequest,
    form: dict[str, Any],
    found: Study | None,
    refusal: Refusal | None = None,
    plan: dict[str, Any] | None = None,
) -> HttpResponse:
    shown = {
        "form": base.shown(form),
        "study": found,
        "policies": base.POLICIES,
        "mechanisms": sorted(name for name, each in MECHANISMS.items() if not each.research_only and name != "none"),
        "previews": previews(form),
        "plan": plan,
        "problem": refusal.detail if refusal else "",
    }
    return render(request, "console/edit.html", shown, status=refusal.status if refusal else 200)


@require_GET
@page("requester")
def follow(request: Visit, study: str) -> HttpResponse:
    """One study: state, places, money, what each level promises, and what can be done next."""
    found = own_study(request.account.id, study)
    return _followed(request, found)


def _followed(request: HttpRequest, found: Study, good: str = "") -> HttpResponse:
    shown = {"study": view(found), "progress": progress(found), "good": good}
    return render(request, "console/study.html", shown)


@require_GET
@page("requester")
def live(request: Visit, study: str) -> HttpResponse:
    """Places and money alone, for the page that asks again every few seconds."""
    found = own_study(request.account.id, study)
    return render(request, "console/progress.html", {"study": {"id": found.id}, "progress": progress(found)})


@require_POST
@page("requester")
def act(request: Visit, study: str, action: str) -> HttpResponse:
    """Move a study on."""
    found = own_study(request.account.id, study)
    if action == "discard":
        lifecycle.discard(found)
        return HttpResponseRedirect("/console/")
    if action == "choose":
        return _followed(request, found, _chosen(choose(found)))
    if action not in _ACTIONS:
        raise Refusal("not-found", "there is nothing at this address")
    moved = _ACTIONS[action](found)
    return HttpResponseRedirect(f"/console/studies/{moved.id}")


def _chosen(selected: dict[str, Any]) -> str:
    new, invited = selected["new"], selected["invited"]
    return _("%(new)d workers were invited now, %(invited)d in all.") % {"new": new, "invited": invited}


@require_GET
@page("requester")
def epsilon_in_words(request: HttpRequest) -> HttpResponse:
    """What a slider's ε means, for the editor."""
    text = next((value for name, value in request.GET.items() if name.endswith("epsilon")), "")
    try:
        epsilon = float(str(text))
    except ValueError:
        epsilon = 0.0
    if not 0 < epsilon <= 20:
        raise Refusal("invalid", "ε must be above 0 and at most 20")
    return HttpResponse(epsilon_words(epsilon))
