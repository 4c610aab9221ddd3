"""Choosing the workers of a study: budgeted greedy by stored history, or at random, refined as answers come.

The first choice assumes that everybody who is asked will answer, at their default level. So it goes on from what
happened instead (Kandappu 2015, §4.5.3.4): whenever a batch of answers was counted, or an invitation lapsed or was
declined, from those who did answer, at the level they did, and those who still may. Nobody who was asked is uninvited
before their time: their device may have drawn and been charged.

History exists only for linkable studies of the same requester, whose workers were told before they joined.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import numpy as np
from django.db.models import Max

from crowdveil.broker import clock
from crowdveil.broker.audit_log.chain import record
from crowdveil.broker.db.transactions import write_transaction
from crowdveil.broker.ledger.models import Spend
from crowdveil.broker.problems import Refusal
from crowdveil.broker.results.history import build_history
from crowdveil.broker.results.latest_batch import find_latest_batch
from crowdveil.broker.studies.candidate_pool import Pool, build_pool, find_lapsed
from crowdveil.broker.studies.definition import Definition
from crowdveil.broker.studies.models import Invitation, Study
from crowdveil.broker.studies.serializers import read_opened
from crowdveil.entropy import SystemEntropy, uniforms
from crowdveil.selection import BudgetedGreedy


def choose(study: Study, *, n: int | None = None) -> dict[str, Any]:
    """Invite workers for the money and places that are left, `n` at most, in place of those who let theirs lapse."""
    if study.state not in ("pilot", "open"):
        raise Refusal("wrong-state", f"workers are chosen while a study is piloted or open; it is {study.state}")
    definition = read_opened(study)
    if definition.document["selection"]["policy"] == "first-come":
        raise Refusal("wrong-state", "this study takes whoever comes first; nobody is chosen")
    number, pool = _latest_batch_number(study), build_pool(study, definition, without=_settle(study))
    wanted = pool.places if n is None else min(n, pool.places)
    chosen, rmse, because = _choose_accounts(study, definition, pool, wanted)
    _invite(study, definition, chosen)
    study.group_size, study.batch_chosen_by = _group_size(definition, pool, n, len(chosen)), number
    study.save(update_fields=["group_size", "batch_chosen_by"])
    return {
        "invited": Invitation.objects.filter(study=study).count(),
        "new": len(chosen),
        "expected_rmse": rmse,
        "stopped_because": because,
    }


def _group_size(definition: Definition, pool: Pool, n: int | None, n_chosen: int) -> int | None:
    """How many the study is to have in all; None is as many as there are places.

    Answers cannot make a random choice better, so no more than now are ever asked; a greedy one may find more of use.
    """
    if n is None and definition.document["selection"]["policy"] == "greedy":
        return None
    return len(pool.given) + (n_chosen if n is None else n)


def is_to_refine(study: Study) -> bool:
    """Whether something happened since workers were chosen last that the choice did not know."""
    return _latest_batch_number(study) > study.batch_chosen_by or find_lapsed(study).exists()


def refine(study: Study) -> None:
    """Go on choosing, up to as many as the requester wanted, by what really came in."""
    if not _claimed(study) and not find_lapsed(study).exists():
        return
    definition = read_opened(study)
    pool = build_pool(study, definition, without=_settle(study))
    missing = pool.places if study.group_size is None else study.group_size - len(pool.given)
    chosen, _, _ = _choose_accounts(study, definition, pool, max(0, min(missing, pool.places)))
    if chosen:
        _invite(study, definition, chosen)


def _latest_batch_number(study: Study) -> int:
    """The number of the newest batch: what answers may be known of."""
    batch = find_latest_batch(study.id)
    return batch.number if batch else 0


def _claimed(study: Study) -> bool:
    """Of several processes one refines by a batch."""
    number = _latest_batch_number(study)
    return Study.objects.filter(id=study.id, batch_chosen_by__lt=number).update(batch_chosen_by=number) == 1


def _settle(study: Study) -> set[str]:
    """Those who did not answer in time make room and are named; those who did stay."""
    done = Spend.objects.filter(study=study.id).values_list("account", flat=True)
    Invitation.objects.filter(study=study, account_id__in=list(done)).update(accepted=True)
    gone = set(find_lapsed(study).values_list("account_id", flat=True))
    Invitation.objects.filter(study=study, account_id__in=gone).delete()
    return gone


def _choose_accounts(
    study: Study, definition: Definition, pool: Pool, wanted: int
) -> tuple[list[str], float | None, str]:
    """Accounts to ask, the error to expect of the whole group, and why no more are asked."""
    if len(pool.given) == len(pool.accounts):
        return [], None, "nobody is left"
    if wanted == 0 or pool.money <= 0:
        return [], None, "no money or no places are left"
    history = build_history(study) if definition.document["selection"]["policy"] == "greedy" else None
    if history is None:
        return _at_random(pool)[:wanted], None, "chosen at random: no history is used"
    fairness = float(definition.document["selection"].get("fairness", "0"))
    selection = BudgetedGreedy(fairness=fairness).select(
        history, pool.candidates, pool.money, given=pool.given, max_workers=wanted
    )
    rmse = selection.expected_rmse if math.isfinite(selection.expected_rmse) else None
    account = dict(zip((str(name) for name in pool.candidates.workers), pool.accounts, strict=True))
    return [account[str(name)] for name in selection.chosen], rmse, selection.stopped_because


def _at_random(pool: Pool) -> list[str]:
    able, pay, money = pool.candidates.can_pay(), pool.candidates.pay, pool.money
    able[list(pool.given)] = False
    order = np.argsort(uniforms(SystemEntropy(), len(pool.accounts)))
    chosen = []
    for each in order[able[order]]:
        if pay[each] <= money:
            money -= float(pay[each])
            chosen.append(pool.accounts[each])
    return chosen


def _invite(study: Study, definition: Definition, accounts: list[str]) -> None:
    expires = clock.now() + timedelta(minutes=definition.document["reservation_minutes"])
    round_before = Invitation.objects.filter(study=study).aggregate(last=Max("asked"))["last"] or 0
    with write_transaction():
        Invitation.objects.bulk_create(
            [
                Invitation(study=study, account_id=account, expires=expires, asked=round_before + 1)
                for account in accounts
            ],
            ignore_conflicts=True,
            batch_size=500,
        )
        record(study.owner_id, "study.select", study.id)
