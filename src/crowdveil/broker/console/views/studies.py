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
from crowdveil.broker.console.access import ConsoleRequest, console_view
from crowdveil.broker.console.forms import base
from crowdveil.broker.console.forms.study_form import from_draft, to_draft
from crowdveil.broker.console.i18n.formatting import epsilon_words
from crowdveil.broker.console.plan_preview import build_plan
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
@console_view("requester", "operator")
def home(request: ConsoleRequest) -> HttpResponse:
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
@console_view("requester")
def edit(request: ConsoleRequest, study: str = "") -> HttpResponse:
    """Build a study; adding and removing questions works without scripts."""
    owned_study = own_study(request.account.id, study) if study else None
    if request.method != "POST":
        form = from_draft(json.loads(owned_study.draft)) if owned_study else base.blank()
        return _editor(request, form, owned_study)
    form = base.read_form(request.POST)
    if _changed_questions(request, form) or "preview" in request.POST:
        return _editor(request, form, owned_study)
    if "plan" in request.POST:
        return _editor(request, form, owned_study, plan=build_plan(form))
    try:
        draft = to_draft(form)
        saved = lifecycle.revise(owned_study, draft) if owned_study else lifecycle.create(request.account, draft)
    except Refusal as refusal:
        return _editor(request, form, owned_study, refusal)
    return HttpResponseRedirect(f"/console/studies/{saved.id}")


def _changed_questions(request: HttpRequest, form: dict[str, Any]) -> bool:
    """A button that adds or removes a question was pressed."""
    kind, gone = request.POST.get("add"), base.parse_index(request.POST.get("remove", ""))
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
    owned_study: Study | None,
    refusal: Refusal | None = None,
    plan: dict[str, Any] | None = None,
) -> HttpResponse:
    shown = {
        "form": base.prepare_form(form),
        "study": owned_study,
        "policies": base.POLICIES,
        "mechanisms": sorted(name for name, each in MECHANISMS.items() if not each.research_only and name != "none"),
        "previews": previews(form),
        "plan": plan,
        "currency": settings.CURRENCY,
        "problem": refusal.detail if refusal else "",
    }
    return render(request, "console/edit.html", shown, status=refusal.status if refusal else 200)


@require_GET
@console_view("requester")
def follow(request: ConsoleRequest, study: str) -> HttpResponse:
    """One study: state, places, money, what each level promises, and what can be done next."""
    owned_study = own_study(request.account.id, study)
    return _render_study(request, owned_study)


def _render_study(request: HttpRequest, owned_study: Study, good: str = "") -> HttpResponse:
    shown = {"study": view(owned_study), "progress": progress(owned_study), "good": good}
    return render(request, "console/study.html", shown)


@require_GET
@console_view("requester")
def live(request: ConsoleRequest, study: str) -> HttpResponse:
    """Places and money alone, for the page that asks again every few seconds."""
    owned_study = own_study(request.account.id, study)
    return render(
        request, "console/progress.html", {"study": {"id": owned_study.id}, "progress": progress(owned_study)}
    )


@require_http_methods(["GET", "HEAD", "POST"])
@console_view("requester")
def act(request: ConsoleRequest, study: str, action: str) -> HttpResponse:
    """Move a study on; whoever only looks at the address of an act that cannot be undone is asked."""
    owned_study = own_study(request.account.id, study)
    if request.method != "POST":
        return _asked(request, owned_study, action)
    if action == "discard":
        lifecycle.discard(owned_study)
        return HttpResponseRedirect("/console/")
    if action == "choose":
        return _render_study(request, owned_study, _describe_selection(choose(owned_study)))
    if action not in _ACTIONS:
        raise Refusal("not-found", "there is nothing at this address")
    moved = _ACTIONS[action](owned_study)
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


def _describe_selection(selected: dict[str, Any]) -> str:
    new, invited = selected["new"], selected["invited"]
    said = ngettext(
        "%(new)d worker was invited now, %(invited)d in all.",
        "%(new)d workers were invited now, %(invited)d in all.",
        new,
    )
    return said % {"new": new, "invited": invited}


@require_GET
@console_view("requester")
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
