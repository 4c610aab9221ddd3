"""Who belongs to a study so far and who may be asked next, by the names that selection knows them by."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from django.db.models import QuerySet

from crowdveil.accounting.nano import NANO
from crowdveil.broker import clock, keys
from crowdveil.broker.identity.models import Account
from crowdveil.broker.ledger.models import Budget, Reservation, Spend
from crowdveil.broker.payments.models import Purse
from crowdveil.broker.payments.study_escrow import cost_with_commission
from crowdveil.broker.studies.definition import Definition
from crowdveil.broker.studies.models import Invitation, Study
from crowdveil.selection import Candidates


@dataclass(frozen=True, slots=True)
class Pool:
    """One row per worker: those in `given` have answered or may still answer, the others may be asked.

    `money` is what is left when everybody who was asked has answered.
    """

    candidates: Candidates
    accounts: tuple[str, ...]
    given: tuple[int, ...]
    money: float
    places: int


def build_pool(study: Study, definition: Definition, *, without: set[str]) -> Pool:
    """Whoever answered counts at the level they chose in the end, everybody else at their default.

    `without` are those who have just let an invitation lapse: asked again at once, they would be chosen again.
    """
    answered = dict(Spend.objects.filter(study=study.id).values_list("account", "level"))
    waiting = set(Invitation.objects.filter(study=study).values_list("account_id", flat=True)) - answered.keys()
    budgets = {budget.account: budget for budget in Budget.objects.iterator()}
    rows: list[tuple[str, str, int, float, float]] = []
    accounts: list[str] = []
    for account in Account.objects.filter(role="worker", disabled=False).order_by("id").iterator():
        level = definition.levels.get(answered.get(account.id, account.default_level))
        if level is None or account.id not in budgets or account.id in without:
            continue
        name = keys.panel_pseudonym(study.owner_id, account.id) if definition.document["linkable"] else account.id
        epsilon = math.inf if level.charge is None else level.charge["epsilon_nano"] / NANO
        rows.append((name, level.name, cost_with_commission(level.pay_cents), epsilon, _remaining(budgets[account.id])))
        accounts.append(account.id)
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    committed_rows = tuple(row for row, account in enumerate(accounts) if account in waiting or account in answered)
    promised = sum(rows[row][2] for row in committed_rows if accounts[row] in waiting - _busy(study))
    return Pool(
        Candidates(*(np.array(column) for column in columns)),
        tuple(accounts),
        committed_rows,
        *_remaining_escrow(study, promised, len(waiting)),
    )


def _remaining_escrow(study: Study, promised: int, n_waiting: int) -> tuple[float, int]:
    """Money and places beside what is paid, held and promised to those who were asked."""
    purse = Purse.objects.get(study=study.id)
    money = purse.budget - purse.paid - purse.commission - purse.held - promised
    return float(money), max(0, int(purse.quota - purse.places_taken - n_waiting))


def _remaining(budget: Budget) -> float:
    return max(0, budget.epsilon_cap - budget.epsilon_spent - budget.epsilon_held) / NANO


def _busy(study: Study) -> set[str]:
    return set(Reservation.objects.filter(study=study.id).values_list("account", flat=True))


def find_lapsed(study: Study) -> QuerySet[Invitation]:
    """Invitations that ran out unused. Whoever accepted has a place until that lapses, and may still answer."""
    busy = Reservation.objects.filter(study=study.id).values("account")
    done = Spend.objects.filter(study=study.id).values("account")
    waiting = Invitation.objects.filter(study=study, accepted=False, expires__lt=clock.now())
    return waiting.exclude(account_id__in=busy).exclude(account_id__in=done)


def decline(study: str, account: str) -> None:
    """Whoever gives a study back makes room for another at once; no answer of theirs is awaited."""
    Invitation.objects.filter(study_id=study, account_id=account, accepted=False).update(expires=clock.now())
