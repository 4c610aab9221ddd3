"""The plan panel: what error to expect from this budget and these levels, before anybody is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from crowdveil.broker.console.access import page
from crowdveil.broker.console.forms import base
from crowdveil.broker.console.forms.study_form import to_draft
from crowdveil.broker.console.i18n.formatting import localized, percent, shown_epsilon, word
from crowdveil.broker.payments.study_escrow import cost_of
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.channels import channels_of, charge_of
from crowdveil.broker.studies.draft import Draft, Level
from crowdveil.channel import Channel
from crowdveil.domain import Domain, Scale
from crowdveil.errors import InputError
from crowdveil.plan import CrowdPart, CrowdSkill, Setting, predict, predict_population
from crowdveil.plan import mix as together
from crowdveil.plan.population import prior_spread

_TYPICAL = "mixed"
_ANSWERED = 0.9
_MOST_QUESTIONS = 20
# A fifth of the planner's usual care takes about a tenth of a second.
_EFFORT = 0.2


@dataclass(frozen=True, slots=True)
class Outlook:
    """One question at one level, or at the mix of levels."""

    question: str
    level: str
    n_workers: int
    expected: str
    guess: str
    tells: bool
    charge: str
    dear: bool = False
    mixed: bool = False


@require_POST
@page("requester")
def panel(request: HttpRequest) -> HttpResponse:
    return render(request, "console/plan.html", {"plan": planned(base.posted(request.POST))})


def planned(form: dict[str, Any]) -> dict[str, Any]:
    """Rows for the expected mix of levels and for every protected level alone, or the sentence why not."""
    try:
        draft = to_draft(form)
        mix = mix_of(form, draft)
        levels = [level for level in draft.levels if level.epsilon]
        rows = _mixed(draft, mix) if len(mix) > 1 else []
        rows += [row for level in levels for row in outlooks(draft, level, affordable(draft, {level.name: 1.0}))]
    except (Refusal, InputError) as error:
        return {"problem": str(error)}
    order = [question.text for question in draft.questions]
    rows.sort(key=lambda row: order.index(row.question))
    return {"rows": rows, "left_out": max(len(draft.questions) - _MOST_QUESTIONS, 0)}


def mix_of(form: dict[str, Any], draft: Draft) -> dict[str, float]:
    """Which share of the workers is expected at each protected level; even where the form does not say."""
    given = {level["name"]: level["share"] for level in form["levels"]}
    names = [level.name for level in draft.levels if level.epsilon]
    try:
        weights = {name: float(given[name]) for name in names if given[name] != ""}
    except ValueError:
        raise Refusal("invalid", "the expected share of a level must be a number such as 40") from None
    if any(not 0 <= weight <= 1e6 for weight in weights.values()):
        raise Refusal("invalid", "the expected share of a level must be between 0 and 100")
    total = sum(weights.values())
    if total == 0:
        return {name: 1 / len(names) for name in names}
    return {name: weight / total for name, weight in weights.items() if weight > 0}


def affordable(draft: Draft, mix: dict[str, float]) -> int:
    """How many workers the money and the quota allow if they choose levels like this."""
    pay: dict[str, int] = {level.name: cost_of(level.pay_cents) for level in draft.levels}
    cost = sum(share * pay[name] for name, share in mix.items())
    return draft.quota if cost == 0 else min(draft.quota, int(draft.budget_cents // cost))


def _mixed(draft: Draft, mix: dict[str, float]) -> list[Outlook]:
    """All levels together, each with the workers expected there, read by one method."""
    n_workers = affordable(draft, mix)
    levels = {level.name: channels_of(draft, level) for level in draft.levels if level.name in mix}
    rows, known = [], dict[Domain, float]()
    for question in draft.questions[:_MOST_QUESTIONS]:
        domain = question.domain.domain()
        if domain not in known:
            parts = [
                CrowdPart(channels[question.id], round(n_workers * mix[name])) for name, channels in levels.items()
            ]
            setting = _setting(draft, None, question, max(n_workers, 1))
            known[domain] = _together(setting, parts, draft.goal)
        rows.append(replace(_row(draft, question, _("expected mix"), n_workers, known[domain], ""), mixed=True))
    return rows


def _together(setting: Setting, parts: list[CrowdPart], goal: str) -> float:
    if not any(part.n_workers for part in parts):
        return math.inf
    return together(setting, parts, population=goal == "population", effort=_EFFORT).error


def outlooks(draft: Draft, level: Level, n_workers: int) -> list[Outlook]:
    """The error to expect for each question if every worker chose this level, beside that of a guess."""
    channels = channels_of(draft, level)
    charge = (charge_of(list(channels.values()), draft.max_answers) or {"epsilon_nano": 0})["epsilon_nano"]
    name = localized(f"{word(level.name)} (ε\u202f{level.epsilon})")
    rows, known = [], dict[Domain, float]()
    for question in draft.questions[:_MOST_QUESTIONS]:
        domain = question.domain.domain()
        if domain not in known:
            known[domain] = _error(draft, level, question, channels[question.id], n_workers)
        row = _row(draft, question, name, n_workers, known[domain], shown_epsilon(charge))
        rows.append(replace(row, dear=charge > settings.DEFAULT_EPSILON_CAP_NANO))
    return rows


def _row(draft: Draft, question: Any, level: str, n_workers: int, error: float, charge: str) -> Outlook:
    domain = question.domain.domain()
    guess = prior_spread(domain) if draft.goal == "population" else _setting(draft, None, question, 1).baseline_error
    # Nobody can be more wrong than a guess that is known beforehand.
    expected, without = (_spelled(each, domain, draft.goal) for each in (min(error, guess), guess))
    tells = error < 0.9 * guess and n_workers > 0
    return Outlook(question.text, level, n_workers, expected, without, tells, charge)


def _error(draft: Draft, level: Level, question: Any, channel: Channel, n_workers: int) -> float:
    setting = _setting(draft, level, question, max(n_workers, 1))
    if draft.goal == "population":
        return predict_population(setting, channel).error
    return predict(setting, channel, effort=_EFFORT).error


def _setting(draft: Draft, level: Level | None, question: Any, n_workers: int) -> Setting:
    domain = question.domain.domain()
    return Setting(
        domain,
        float((level.epsilon if level else None) or 1),
        n_workers,
        _ANSWERED,
        CrowdSkill.from_name(_TYPICAL, domain),
        n_questions=len(draft.questions),
        protect_participation=draft.protects_participation,
    )


def _spelled(error: float, domain: Domain, goal: str) -> str:
    if isinstance(domain, Scale):
        ends = {"low": domain.low, "high": domain.high}
        return localized(_("± %(error)s on a scale from %(low)s to %(high)s") % ({"error": f"{error:.2f}"} | ends))
    if goal == "truth":
        return _("wrong in %(error)s of cases") % {"error": percent(error)}
    return _("± %(error)s percentage points") % {"error": localized(f"{100 * error:.1f}")}
