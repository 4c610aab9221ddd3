"""A requester's studies: list, build, follow, open and close."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods

from crowdveil.broker.audit_log.models import Act
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
# What cannot be undone is asked about first; the states in which there is something to ask.
_CONFIRMED = {
    "pilot": ("draft",),
    "open": ("draft", "pilot"),
    "discard": ("draft",),
    "close": ("pilot", "open"),
    "publish": ("closed",),
}


@require_GET
@page("requester", "operator")
def home(request: Visit) -> HttpResponse:
    """Everything of mine; operators have a page of their own."""
    if request.scope == "operator":
        return HttpResponseRedirect("/console/operator")
    account = request.account
    # A study knows its day; which of a day's studies came later is in the audit log.
    created = Act.objects.filter(actor=account.id, verb="study.create").values_list("subject", "index")
    order = dict(created)
    studies = Study.objects.filter(owner=account).select_related("owner")
    newest_first = sorted(studies, key=lambda study: (study.created, order.get(study.id, 0)), reverse=True)
    rows = [{"id": each.id, "title": each.title, "created": each.created, **progress(each)} for each in newest_first]
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
        "currency": settings.CURRENCY,
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


@require_http_methods(["GET", "HEAD", "POST"])
@page("requester")
def act(request: Visit, study: str, action: str) -> HttpResponse:
    """Move a study on; whoever only looks at the address of an act that cannot be undone is asked."""
    found = own_study(request.account.id, study)
    if request.method != "POST":
        return _asked(request, found, action)
    if action == "discard":
        lifecycle.discard(found)
        return HttpResponseRedirect("/console/")
    if action == "choose":
        return _followed(request, found, _chosen(choose(found)))
    if action not in _ACTIONS:
        raise Refusal("not-found", "there is nothing at this address")
    moved = _ACTIONS[action](found)
    return HttpResponseRedirect(f"/console/studies/{moved.id}")


def _asked(request: HttpRequest, study: Study, action: str) -> HttpResponse:
    """The page that says what is about to happen and what of it is for good, with the button that does it."""
    if action not in _CONFIRMED:
        raise Refusal("not-found", "there is nothing at this address")
    if study.state not in _CONFIRMED[action]:
        states = " or ".join(_CONFIRMED[action])
        raise Refusal("wrong-state", f"the study must be {states} for this; it is {study.state}")
    shown = {"study": view(study), "progress": progress(study), "action": action}
    return render(request, "console/confirm.html", shown)


def _chosen(selected: dict[str, Any]) -> str:
    new, invited = selected["new"], selected["invited"]
    said = ngettext(
        "%(new)d worker was invited now, %(invited)d in all.",
        "%(new)d workers were invited now, %(invited)d in all.",
        new,
    )
    return said % {"new": new, "invited": invited}


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
