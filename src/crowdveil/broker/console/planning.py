"""The plan panel: what this study would find out at each level, before anybody is asked."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from crowdveil.broker.console import forms
from crowdveil.broker.console.door import page
from crowdveil.broker.payments.purse import cost_of
from crowdveil.broker.refusal import Refusal
from crowdveil.broker.studies.channels import channels_of, charge_of
from crowdveil.broker.studies.draft import Draft, Level
from crowdveil.domain import Scale
from crowdveil.errors import InputError
from crowdveil.plan import Crowd, Setting, predict, predict_population
from crowdveil.plan.population import prior_spread

_TYPICAL = "mixed"


@dataclass(frozen=True, slots=True)
class Outlook:
    """One question at one level."""

    question: str
    level: str
    n_workers: int
    epsilon: str
    expected: str
    guess: str
    tells: bool
    charge: str


@require_POST
@page("requester")
def panel(request: HttpRequest) -> HttpResponse:
    """Rows for every protected level and question, if all workers chose that level."""
    try:
        draft = forms.to_draft(forms.posted(request.POST))
        rows = [row for level in draft.levels if level.epsilon for row in outlooks(draft, level)]
        shown: dict[str, object] = {"rows": rows, "goal": draft.goal}
    except (Refusal, InputError) as error:
        shown = {"problem": str(error)}
    return render(request, "console/plan.html", shown)


def outlooks(draft: Draft, level: Level) -> list[Outlook]:
    """The error to expect for each question at this level, beside that of a guess."""
    channels = channels_of(draft, level)
    charge = charge_of(list(channels.values()), draft.max_answers) or {"epsilon_nano": 0}
    n_workers = affordable(draft, level)
    rows = []
    for question in draft.questions[:20]:
        domain = question.domain.domain()
        setting = Setting(
            domain,
            float(level.epsilon or 1),
            max(n_workers, 1),
            0.9,
            Crowd.named(_TYPICAL, domain),
            n_questions=len(draft.questions),
            protect_participation=draft.protects_participation,
        )
        population = draft.goal == "population"
        channel = channels[question.id]
        found = predict_population(setting, channel) if population else predict(setting, channel, effort=0.2)
        guess = prior_spread(domain) if population else setting.prior_error
        rows.append(
            Outlook(
                question.text,
                level.name,
                n_workers,
                str(level.epsilon),
                _spelled(found.error, isinstance(domain, Scale)),
                _spelled(guess, isinstance(domain, Scale)),
                found.error < 0.9 * guess and n_workers > 0,
                f"{charge['epsilon_nano'] / 1e9:.2f}",
            )
        )
    return rows


def affordable(draft: Draft, level: Level) -> int:
    """How many workers the money and the quota allow at this level's pay."""
    cost = cost_of(level.pay_cents)
    return draft.quota if cost == 0 else min(draft.quota, draft.budget_cents // cost)


def _spelled(error: float, on_scale: bool) -> str:
    if on_scale:
        return _("± %(error)s levels") % {"error": f"{error:.2f}"}
    return _("± %(error)s percentage points") % {"error": f"{100 * error:.1f}"}
