"""Choosing the workers of a study: Loki's greedy choice over stored history, or a random one, refined as answers come.

History exists only for linkable studies of the same requester, whose workers were told before they joined.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import numpy as np
from django.db.models import Max, QuerySet

from crowdveil.accounting.nano import NANO
from crowdveil.broker import clock, vault
from crowdveil.broker.audit.chain import record
from crowdveil.broker.identity.models import Account
from crowdveil.broker.ledger.models import Budget, Reservation, Spend
from crowdveil.broker.payments.models import Purse
from crowdveil.broker.payments.purse import cost_of
from crowdveil.broker.refusal import Refusal
from crowdveil.broker.results.history import history_of
from crowdveil.broker.studies.cards import opened
from crowdveil.broker.studies.definition import Opened
from crowdveil.broker.studies.models import Invitation, Study
from crowdveil.broker.writing import write
from crowdveil.entropy import SystemEntropy, uniforms
from crowdveil.selection import Candidates, Greedy


def choose(study: Study, *, n: int | None = None) -> dict[str, Any]:
    """Invite workers for the money and places that are left; whoever let an invitation lapse is replaced."""
    if study.state not in ("pilot", "open"):
        raise Refusal("wrong-state", f"workers are chosen while a study is piloted or open; it is {study.state}")
    definition = opened(study)
    policy = definition.document["selection"]["policy"]
    if policy == "first-come":
        raise Refusal("wrong-state", "this study takes whoever comes first; nobody is chosen")
    _drop_lapsed(study)
    candidates, accounts = _candidates(study, definition)
    wanted = min(_places(study), n or len(accounts))
    chosen, rmse, because = _chosen(study, definition, candidates, wanted) if accounts else ([], None, "nobody is left")
    _invite(study, definition, [accounts[name] for name in chosen])
    return {
        "invited": Invitation.objects.filter(study=study).count(),
        "new": len(chosen),
        "expected_rmse": rmse,
        "stopped_because": because,
    }


def refine(study: Study) -> None:
    """Replace those who let their invitation lapse, by what the answers so far have taught; nobody else is asked."""
    n_lapsed = _lapsed(study).count()
    if n_lapsed:
        choose(study, n=n_lapsed)


def _drop_lapsed(study: Study) -> None:
    """Those who did not answer in time make room; those who did stay, and count in the next round's history."""
    done = Spend.objects.filter(study=study.id).values_list("account", flat=True)
    Invitation.objects.filter(study=study, account_id__in=list(done)).update(accepted=True)
    _lapsed(study).delete()


def _lapsed(study: Study) -> QuerySet[Invitation]:
    """Invitations that ran out unused. Whoever accepted has a place until that lapses, and may still answer."""
    busy = Reservation.objects.filter(study=study.id).values("account")
    done = Spend.objects.filter(study=study.id).values("account")
    waiting = Invitation.objects.filter(study=study, accepted=False, expires__lt=clock.now())
    return waiting.exclude(account_id__in=busy).exclude(account_id__in=done)


def _candidates(study: Study, definition: Opened) -> tuple[Candidates, dict[str, str]]:
    """Everybody not yet asked whose default level the study offers, by panel name, with what each costs."""
    asked = set(Invitation.objects.filter(study=study).values_list("account_id", flat=True))
    levels = definition.levels
    rows, accounts = [], {}
    budgets = {budget.account: budget for budget in Budget.objects.iterator()}
    for account in Account.objects.filter(role="worker", disabled=False).order_by("id").iterator():
        level = levels.get(account.default_level)
        if level is None or account.id in asked or account.id not in budgets:
            continue
        name = vault.panel_pseudonym(study.owner_id, account.id) if definition.document["linkable"] else account.id
        accounts[name] = account.id
        epsilon = math.inf if level.charge is None else level.charge["epsilon_nano"] / NANO
        rows.append((name, level.name, cost_of(level.pay_cents), epsilon, _remaining(budgets[account.id])))
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    return Candidates(*(np.array(column) for column in columns)), accounts


def _remaining(budget: Budget) -> float:
    return max(0, budget.epsilon_cap - budget.epsilon_spent - budget.epsilon_held) / NANO


def _places(study: Study) -> int:
    purse = Purse.objects.get(study=study.id)
    waiting = Invitation.objects.filter(study=study, accepted=False).count()
    return max(0, int(purse.quota - purse.places_taken - waiting))


def _chosen(
    study: Study, definition: Opened, candidates: Candidates, wanted: int
) -> tuple[list[str], float | None, str]:
    purse = Purse.objects.get(study=study.id)
    money = float(purse.budget - purse.paid - purse.commission - purse.held)
    history = history_of(study) if definition.document["selection"]["policy"] == "greedy" else None
    if wanted == 0 or money <= 0:
        return [], None, "no money or no places are left"
    if history is None:
        return _at_random(candidates, money)[:wanted], None, "chosen at random: no history is used"
    fairness = float(definition.document["selection"].get("fairness", "0"))
    selection = Greedy(fairness=fairness).select(history, candidates, money)
    rmse = selection.expected_rmse if math.isfinite(selection.expected_rmse) else None
    return [str(name) for name in selection.chosen][:wanted], rmse, selection.stopped_because


def _at_random(candidates: Candidates, money: float) -> list[str]:
    order = np.argsort(uniforms(SystemEntropy(), len(candidates)))
    chosen = []
    for each in order[candidates.can_pay()[order]]:
        if candidates.pay[each] <= money:
            money -= float(candidates.pay[each])
            chosen.append(str(candidates.workers[each]))
    return chosen


def _invite(study: Study, definition: Opened, accounts: list[str]) -> None:
    expires = clock.now() + timedelta(minutes=definition.document["reservation_minutes"])
    round_before = Invitation.objects.filter(study=study).aggregate(last=Max("asked"))["last"] or 0
    with write():
        Invitation.objects.bulk_create(
            [
                Invitation(study=study, account_id=account, expires=expires, asked=round_before + 1)
                for account in accounts
            ],
            ignore_conflicts=True,
            batch_size=500,
        )
        record(study.owner_id, "study.select", study.id)
