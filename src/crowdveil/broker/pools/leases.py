"""Leasing a batch: tasks, ε, money and a place are held for one worker until the reports come or time runs out.

Tasks with the fewest reports and open leases come first, equal ones at random; none twice to a worker. The bound on the
reports of a task is not kept here but by the statement that stores them.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from crowdveil.broker import clock, clock_guard
from crowdveil.broker.db.transactions import (
    alone_with_leases_of,
    execute_rowcount,
    fetch_all,
    fetch_one,
    write_transaction,
)
from crowdveil.broker.ids import random_id
from crowdveil.broker.ledger import budget, reservations
from crowdveil.broker.ledger.budget import MirrorCharge
from crowdveil.broker.ledger.models import OneByOne, Spend
from crowdveil.broker.payments import study_escrow
from crowdveil.broker.pools.models import Lease
from crowdveil.broker.pools.task_list import MAX_SHUFFLE
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.definition import Definition, DefinitionLevel
from crowdveil.broker.studies.definition_cache import FrozenStudy
from crowdveil.broker.submissions.pseudonyms import pseudonym_in

_NEVER_LEASED = """
NOT EXISTS (SELECT 1 FROM pools_leasedtask l WHERE l.study = t.study AND l.pseudonym = %s AND l.task = t.number)
"""
# An equality, or SQLite would sort the whole pool instead of reading the index in its order.
_FEWEST_FIRST = f"""
SELECT t.number FROM pools_task t
WHERE t.study = %s AND t.open = %s AND t.load < %s AND {_NEVER_LEASED}
ORDER BY t.load, t.shuffle LIMIT %s
"""
_LISTED = f"""
SELECT t.number FROM pools_assignment a JOIN pools_task t ON t.study = a.study AND t.number = a.task
WHERE a.study = %s AND a.code = %s AND t.open AND t.n_reports < %s AND {_NEVER_LEASED}
ORDER BY t.number LIMIT %s
"""
_CLAIM_CODE = "UPDATE pools_workercode SET pseudonym = %s WHERE study = %s AND code = %s AND pseudonym IN ('', %s)"
_INSERT_LEASE = """
INSERT INTO pools_lease (id, study, pseudonym, level, expires, active) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT DO NOTHING
"""
_INSERT_TASK = "INSERT INTO pools_leasedtask (id, study, pseudonym, task, lease) VALUES (%s, %s, %s, %s, %s)"
_INSERT_HOLD = """
INSERT INTO ledger_reservation (id, study, account, level, epsilon, rho, cost, expires)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class LeasedBatch:
    """An open batch as its worker sees it."""

    id: str
    level: int
    expires: datetime
    active: bool
    tasks: tuple[int, ...]


def pool_rules(opened: Definition) -> dict[str, Any]:
    """The rules of a pool; a survey is refused."""
    if "pool" not in opened.document:
        raise Refusal("wrong-state", "this study is a survey; it is answered once, not in batches")
    rules: dict[str, Any] = opened.document["pool"]
    return rules


def batch_pay(opened: Definition, level: DefinitionLevel, n_tasks: int) -> int:
    """The pay of a batch of this many tasks: its share of a full one, rounded up. Answers do not change it."""
    return -(-level.pay_cents * n_tasks // pool_rules(opened)["batch_size"])


def check_one_by_one(opened: Definition, level: DefinitionLevel) -> None:
    if not pool_rules(opened)["tasks_about_items"]:
        raise Refusal("invalid", "answers of this pool may be about the worker, so they are counted together")
    if not level.protected:
        raise Refusal("invalid", f"level {level.name} protects no answer, so none is protected one by one")


def lease_batch(
    account: str, study: FrozenStudy, level: DefinitionLevel, *, code: str | None = None, one_by_one: bool = False
) -> tuple[LeasedBatch, bool]:
    """The open batch of this worker, renewed where its time was over, or a new one; and whether it is new."""
    rules = pool_rules(study.opened)
    if one_by_one:
        check_one_by_one(study.opened, level)
    release_expired(study=study.id)
    pseudonym = pseudonym_in(study, account)
    if (open_batch := find_batch(study.id, pseudonym)) is not None:
        if open_batch.level != level.number:
            raise Refusal("wrong-state", "a batch at another level is leased to you; finish it or give it back first")
        return renew(account, study, level, open_batch, one_by_one=one_by_one), False
    _check_level(account, study, level)
    key, expires = random_id(), _expiry(study)
    with write_transaction():
        hold_batch(account, study, level, expires, one_by_one=one_by_one)
        if not execute_rowcount(_INSERT_LEASE, key, study.id, pseudonym, level.number, _adapted(expires), True):
            raise Refusal("not-open", "another device of yours is leasing a batch this very moment; try again")
        tasks = _pick_tasks(study.id, pseudonym, rules, code)
        if not tasks:
            raise Refusal("no-tasks", "no task of this pool is left for you now; nothing was held")
        _add_load(study.id, tasks, 1)
        for task in tasks:
            execute_rowcount(_INSERT_TASK, random_id(), study.id, pseudonym, task, key)
        # Last, because everybody who labels in this pool waits for this one row.
        study_escrow.hold(study.id, study_escrow.cost_with_commission(level.pay_cents))
    return LeasedBatch(key, level.number, expires, True, tuple(tasks)), True


def _check_level(account: str, study: FrozenStudy, level: DefinitionLevel) -> None:
    """One level per worker and pool: reports of one pseudonym at two levels could be compared."""
    mine = {"account": account, "study": study.id}
    earlier = [spend.level for model in (Spend, OneByOne) for spend in model._default_manager.filter(**mine)]
    if earlier and earlier[0] != level.name:
        raise Refusal(
            "wrong-state", f"you have labelled in this pool at level {earlier[0]}; it is the same for all batches"
        )


def hold_batch(
    account: str, study: FrozenStudy, level: DefinitionLevel, expires: datetime, *, one_by_one: bool
) -> None:
    """Hold the ε and remember the money of a full batch; the money itself is held last."""
    charge = MirrorCharge() if one_by_one else reservations.most(level)
    cost = study_escrow.cost_with_commission(level.pay_cents)
    budget.hold(account, charge)
    values = (random_id(), study.id, account, level.name, charge.epsilon, charge.rho, cost, _adapted(expires))
    if not execute_rowcount(_INSERT_HOLD, *values):
        raise Refusal("not-open", "another device of yours is leasing a batch this very moment; try again")


def _pick_tasks(study: str, pseudonym: str, rules: dict[str, Any], code: str | None) -> list[int]:
    alone_with_leases_of(study)
    if rules["assignment"] == "listed":
        if code is None or not execute_rowcount(_CLAIM_CODE, pseudonym, study, code, pseudonym):
            raise Refusal("not-invited", "the workers of this pool are listed; this worker code is not, or is in use")
        found = fetch_all(_LISTED, study, code, rules["max_reports"], pseudonym, rules["batch_size"])
    else:
        found = fetch_all(_FEWEST_FIRST, study, True, rules["redundancy"], pseudonym, rules["batch_size"])
    return sorted(number for (number,) in found)


def _add_load(study: str, tasks: Sequence[int], change: int) -> None:
    marks = lock_tasks(study, tasks)
    # Equal tasks get another order; without the operator %, which the two databases' placeholders spell differently.
    shuffled = "shuffle * 1009 + %s"
    execute_rowcount(
        f"UPDATE pools_task SET load = load + %s, shuffle = {shuffled} - ({shuffled}) / {MAX_SHUFFLE} * {MAX_SHUFFLE} "
        f"WHERE study = %s AND number IN ({marks})",
        change,
        *[secrets.randbelow(MAX_SHUFFLE)] * 2,
        study,
        *tasks,
    )


def lock_tasks(study: str, tasks: Sequence[int]) -> str:
    """Lock the rows of these tasks in the order of their numbers, so that nobody waits in a circle; their marks."""
    marks = ", ".join(["%s"] * len(tasks))
    if connection.vendor == "postgresql":
        in_order = f"SELECT 1 FROM pools_task WHERE study = %s AND number IN ({marks}) ORDER BY number FOR UPDATE"
        fetch_all(in_order, study, *tasks)
    return marks


def find_batch(study: str, pseudonym: str, key: str | None = None) -> LeasedBatch | None:
    statement = "SELECT id, level, expires, active FROM pools_lease WHERE study = %s AND pseudonym = %s"
    found = fetch_one(statement, study, pseudonym)
    if found is None or key not in (None, found[0]):
        return None
    return LeasedBatch(found[0], found[1], clock.moment(found[2]), bool(found[3]), tasks_of(found[0]))


def tasks_of(lease: str) -> tuple[int, ...]:
    return tuple(
        task for (task,) in fetch_all("SELECT task FROM pools_leasedtask WHERE lease = %s ORDER BY task", lease)
    )


def renew(
    account: str, study: FrozenStudy, level: DefinitionLevel, batch: LeasedBatch, *, one_by_one: bool = False
) -> LeasedBatch:
    """More time for an open batch; one whose time was over is held anew, if there is still money and ε for it."""
    expires = _expiry(study)
    with write_transaction():
        execute_rowcount(
            "UPDATE ledger_reservation SET expires = %s WHERE study = %s AND account = %s",
            _adapted(expires),
            study.id,
            account,
        )
        held = reservations.find(study.id, account) is not None
        if not held:
            hold_batch(account, study, level, expires, one_by_one=one_by_one)
        if execute_rowcount("UPDATE pools_lease SET active = %s WHERE id = %s AND NOT active", True, batch.id):
            _add_load(study.id, batch.tasks, 1)
        if not execute_rowcount("UPDATE pools_lease SET expires = %s WHERE id = %s", _adapted(expires), batch.id):
            raise Refusal("not-found", "no such batch is leased to you")
        if not held:
            study_escrow.hold(study.id, study_escrow.cost_with_commission(level.pay_cents))
    return LeasedBatch(batch.id, batch.level, expires, True, batch.tasks)


def give_back(account: str, study: FrozenStudy, key: str) -> None:
    """Release a batch; its tasks go to others and never come back to this worker."""
    batch = find_batch(study.id, pseudonym_in(study, account), key)
    if batch is None:
        raise Refusal("not-found", "no such batch is leased to you")
    with write_transaction():
        if (held := reservations.find(study.id, account)) is not None and reservations.take(held):
            budget.release(account, held.charge)
        was_active = execute_rowcount("DELETE FROM pools_lease WHERE id = %s AND active", batch.id)
        execute_rowcount("DELETE FROM pools_lease WHERE id = %s", batch.id)
        if was_active:
            _add_load(study.id, batch.tasks, -1)
        if held is not None:
            study_escrow.release(study.id, held.cost)


def release_expired(*, study: str | None = None) -> int:
    """Give the tasks of leases whose time has passed to others; the holds of money and ε have their own expiry."""
    if not clock_guard.is_trusted():
        return 0
    expired = Lease.objects.filter(active=True, expires__lt=clock.now())
    found = list((expired.filter(study=study) if study else expired).values_list("id", "study"))
    if found:
        reservations.release_expired(study=study)
    for key, of_study in found:
        with write_transaction():
            # Of two who notice at once, one releases.
            if execute_rowcount("UPDATE pools_lease SET active = %s WHERE id = %s AND active", False, key):
                _add_load(of_study, tasks_of(key), -1)
    return len(found)


def _expiry(study: FrozenStudy) -> datetime:
    return clock.after(minutes=study.opened.document["reservation_minutes"])


def _adapted(moment: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(moment)
