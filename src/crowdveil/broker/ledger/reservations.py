"""Accepting a study: money, a place and ε are held until the reports come or time runs out.

The device's own charge at the draw is irrevocable; what expires here is only the broker's hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q

from crowdveil.broker import clock, clock_guard
from crowdveil.broker.db.transactions import changed, row, write
from crowdveil.broker.ids import random_id
from crowdveil.broker.ledger import budget
from crowdveil.broker.ledger.budget import MirrorCharge
from crowdveil.broker.ledger.models import Reservation, Spend
from crowdveil.broker.payments import study_escrow
from crowdveil.broker.pools.models import Pool
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.definition import Opened, OpenedLevel

_FIND = "SELECT id, level, epsilon, rho, cost, expires FROM ledger_reservation WHERE study = %s AND account = %s"
# A second one is no error: PostgreSQL would log the statement, and with it who joined what.
_PUT = """
INSERT INTO ledger_reservation (id, study, account, level, epsilon, rho, cost, expires)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
_FIELDS = ("id", "level", "epsilon", "rho", "cost", "expires")


class _Taken(Exception):
    """This worker has a hold on this study already."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A reservation as a submission needs it."""

    id: str
    level: str
    charge: MirrorCharge
    cost: int
    expires: datetime


def reserve(account: str, opened: Opened, level: OpenedLevel) -> tuple[Hold, bool]:
    """The hold of this worker on this study, and whether it is new."""
    study = opened.document["id"]
    release_expired(study=study, account=account)
    if (held := find(study, account)) is not None and held.level == level.name:
        return held, False
    try:
        with write():
            # Together: whoever is refused the other level keeps the place that they have.
            if held is not None:
                cancel(study, account)
            return _hold(account, study, level, opened.document["reservation_minutes"]), True
    except _Taken:
        # The same worker accepted the same study twice at once; the other request won.
        if (held := find(study, account)) is not None and held.level == level.name:
            return held, False
        raise Refusal("already-submitted", "you are accepting this study twice at once; try again") from None


def _hold(account: str, study: str, level: OpenedLevel, minutes: int) -> Hold:
    charge = most(level)
    cost = study_escrow.cost_of(level.pay_cents)
    hold = Hold(random_id(), level.name, charge, cost, clock.after(minutes=minutes))
    with write():
        budget.hold(account, charge)
        if Spend.objects.filter(account=account, study=study).exists():
            raise Refusal("already-submitted", "you have answered this study; it can be answered once")
        study_escrow.hold(study, cost)
        expires = connection.ops.adapt_datetimefield_value(hold.expires)
        if not changed(_PUT, hold.id, study, account, level.name, charge.epsilon, charge.rho, cost, expires):
            raise _Taken
    return hold


def most(level: OpenedLevel) -> MirrorCharge:
    """The most a submission at this level can be charged."""
    if level.charge is None:
        return MirrorCharge(unprotected=True)
    return MirrorCharge(level.charge["epsilon_nano"], level.charge["rho_nano"])


def find(study: str, account: str) -> Hold | None:
    found = row(_FIND, study, account)
    return None if found is None else _read(found)


def _read(found: tuple[Any, ...]) -> Hold:
    key, level, epsilon, rho, cost, expires = found
    return Hold(key, level, MirrorCharge(epsilon, rho), cost, clock.moment(expires))


def take(hold: Hold) -> bool:
    """Remove the reservation; False when somebody else did (it expired, or was settled)."""
    return changed("DELETE FROM ledger_reservation WHERE id = %s", hold.id) == 1


def cancel(study: str, account: str) -> bool:
    """The worker gives the study back: only the hold is released."""
    held = find(study, account)
    return held is not None and _release(study, account, held)


def _release(study: str, account: str, held: Hold) -> bool:
    with write():
        budget.release(account, held.charge)
        if not take(held):
            transaction.set_rollback(True)
            return False
        study_escrow.release(study, held.cost)
    return True


def release_expired(*, study: str | None = None, account: str | None = None) -> int:
    """Release holds whose time has passed: of one study, of one worker, of either, or all."""
    if not clock_guard.is_trusted():
        return 0
    expired = Reservation.objects.filter(expires__lt=clock.now())
    if study or account:
        expired = expired.filter(Q(study=study) | Q(account=account))
    return _release_each(expired)


def release_of(account: str) -> int:
    """Release every hold of a worker who leaves."""
    return _release_each(Reservation.objects.filter(account=account))


def release_all(study: str) -> int:
    """Release every hold of a study that closes."""
    return _release_each(Reservation.objects.filter(study=study))


def release_unsettled() -> int:
    """At start-up: release holds that an older version left beside their spend; in pools they belong to leases."""
    spends = Spend.objects.filter(account=OuterRef("account"), study=OuterRef("study"))
    surveys = Reservation.objects.exclude(study__in=Pool.objects.values("study"))
    return _release_each(surveys.filter(Exists(spends)))


def _release_each(reservations: Any) -> int:
    found = list(reservations.values_list("study", "account", *_FIELDS))
    return sum(_release(study, account, _read(tuple(fields))) for study, account, *fields in found)
