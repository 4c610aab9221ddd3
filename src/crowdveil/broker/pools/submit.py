"""One transaction per batch: the ledger, the money, the bound of every task and the reports change together or not.

The bound is a condition of the UPDATE that counts the report: a task that reached it while the batch was out is
dropped, the others are stored, and the pay is that of the whole batch.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol

from crowdveil.broker import clock, keys
from crowdveil.broker.db.roles import as_role
from crowdveil.broker.db.transactions import execute_rowcount, fetch_all, fetch_one, write_transaction
from crowdveil.broker.ids import random_id
from crowdveil.broker.ledger import budget, reservations
from crowdveil.broker.ledger.budget import NOTHING, MirrorCharge
from crowdveil.broker.payments import earnings, study_escrow
from crowdveil.broker.pools.leases import LeasedBatch, batch_pay, check_one_by_one, find_batch, lock_tasks, pool_rules
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.definition import DefinitionLevel
from crowdveil.broker.studies.definition_cache import FrozenStudy
from crowdveil.broker.submissions.acknowledged import count_acknowledged
from crowdveil.broker.submissions.pseudonyms import pseudonym_in
from crowdveil.broker.submissions.submit import DuplicateRow, Submitter, idempotency_digest
from crowdveil.canonical_json import sha256_hex

_STORE = """
INSERT INTO pools_batch
    (id, study, pseudonym, level, tasks, codes, withdrawal_sha256, lease, digest, receipt, idempotency, counted, day)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, 0, %s)
ON CONFLICT DO NOTHING
"""
_SPEND = """
INSERT INTO ledger_spend (id, account, study, level, epsilon, rho, day) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (account, study) DO UPDATE
SET epsilon = ledger_spend.epsilon + excluded.epsilon, rho = ledger_spend.rho + excluded.rho
"""
_ONE_BY_ONE = """
INSERT INTO ledger_onebyone (id, account, study, level, epsilon, count, day) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (account, study) DO UPDATE SET count = ledger_onebyone.count + excluded.count
"""
_CONSENT = """
INSERT INTO identity_consent (id, account_id, study, version, day) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (account_id, study) DO UPDATE SET version = excluded.version
"""


class TaskReport(Protocol):
    """One report as it comes in: a code among the outputs of the level's channel."""

    task: int
    report: int


@dataclass(frozen=True, slots=True)
class BatchParcel:
    """A batch of reports on its way into the store."""

    study: FrozenStudy
    level: DefinitionLevel
    lease: str
    reports: dict[int, int]
    one_by_one: bool
    withdrawal_sha256: str
    idempotency_key: str

    @property
    def digest(self) -> str:
        """What a retry must repeat to be the same batch."""
        sent = [[task, code] for task, code in sorted(self.reports.items())]
        return sha256_hex([self.level.name, self.one_by_one, self.withdrawal_sha256, sent])

    @property
    def charge(self) -> MirrorCharge:
        """What the reports cost by the broker's mirror, summed."""
        n = len(self.reports)
        return MirrorCharge(self.level.epsilon[0] * n, self.level.rho[0] * n)


def read_reports(level: DefinitionLevel, channel: str, reports: Sequence[TaskReport]) -> dict[int, int]:
    """Task → code, where every report fits the form's channel at this level."""
    if channel != level.channels[0]:
        raise Refusal("wrong-channel", f"the reports came through another channel than level {level.name} has")
    codes: dict[int, int] = {}
    for report in reports:
        if report.task in codes:
            raise Refusal("invalid", f"task {report.task} has two reports; send one", task=report.task)
        if not 0 <= report.report < level.n_outputs[0]:
            raise Refusal(
                "report-out-of-range", f"a report must be from 0 to {level.n_outputs[0] - 1}", task=report.task
            )
        codes[report.task] = report.report
    return codes


def submit_batch(sender: Submitter, parcel: BatchParcel) -> tuple[dict[str, Any], bool]:
    """The receipt, and whether the batch was stored by this call."""
    pool_rules(parcel.study.opened)
    pseudonym = pseudonym_in(parcel.study, sender.account)
    if (stored := _stored_receipt(parcel, pseudonym)) is not None:
        return stored, False
    try:
        receipt = _store(sender, parcel, pseudonym)
    except (DuplicateRow, Refusal) as refused:
        # The twin of this request may have been stored while this one was on its way.
        if (stored := _stored_receipt(parcel, pseudonym)) is not None:
            return stored, False
        if isinstance(refused, DuplicateRow):
            raise Refusal(
                "already-submitted", "this withdrawal key or batch is already in use; make a new one"
            ) from None
        raise
    count_acknowledged(parcel.study.id)
    return receipt, True


def _store(sender: Submitter, parcel: BatchParcel, pseudonym: str) -> dict[str, Any]:
    study, level, day = parcel.study.id, parcel.level, clock.today()
    batch = find_batch(study, pseudonym, parcel.lease)
    if batch is None:
        raise Refusal("not-found", "no such batch is leased to you; it was sent, given back or never leased")
    _check_batch(parcel, batch)
    pay, receipt = batch_pay(parcel.study.opened, level, len(batch.tasks)), random_id()
    with write_transaction():
        with as_role("ledger"):
            # Looked for under the lock: a renewal that holds anew after an earlier look would never be settled.
            budget.lock(sender.account)
            hold = reservations.find(study, sender.account)
            budget.settle(sender.account, _mirror_charge(sender, parcel), hold.charge if hold else NOTHING)
            if hold is not None and not reservations.take(hold):
                raise budget.hold_gone()
            _record_spend(sender, parcel, day)
        with as_role("pools"):
            active = execute_rowcount("DELETE FROM pools_lease WHERE id = %s AND active", batch.id)
            if not active and not execute_rowcount("DELETE FROM pools_lease WHERE id = %s", batch.id):
                raise DuplicateRow
            stored = _count_reports(parcel, batch, was_active=bool(active))
            codes = array("H", [parcel.reports[task] for task in stored])
            packed = _little_endian(array("I", stored)), _little_endian(codes)
            values = (random_id(), study, pseudonym, level.number, *packed, parcel.withdrawal_sha256, batch.id)
            digests = (parcel.digest, receipt, idempotency_digest(parcel.idempotency_key), day.isoformat())
            if not execute_rowcount(_STORE, *values, *digests):
                raise DuplicateRow
        with as_role("identity"):
            version = parcel.study.opened.document["consent"]["version"]
            execute_rowcount(_CONSENT, random_id(), sender.account, study, version, day.isoformat())
        with as_role("payments"):
            earnings.earn(sender.payee, pay)
            # Last, because everybody who labels in this pool waits for this one row.
            study_escrow.settle(study, pay, hold.cost if hold else None)
    return _receipt(parcel, receipt, len(stored), len(batch.tasks), day)


def _check_batch(parcel: BatchParcel, batch: LeasedBatch) -> None:
    if batch.level != parcel.level.number:
        raise Refusal("invalid", "this batch was leased at another level")
    if parcel.one_by_one:
        check_one_by_one(parcel.study.opened, parcel.level)
    leased = set(batch.tasks)
    if foreign := parcel.reports.keys() - leased:
        raise Refusal("invalid", f"task {min(foreign)} is not in this batch", task=min(foreign))
    if parcel.study.opened.protects_participation and (missing := leased - parcel.reports.keys()):
        raise Refusal(
            "missing-report",
            "this pool hides which tasks were answered, so every task of the batch needs exactly one report, "
            f"skipped ones included; task {min(missing)} has none",
            task=min(missing),
        )
    if not parcel.reports:
        raise Refusal("missing-report", "a batch needs at least one report; give it back instead")


def _mirror_charge(sender: Submitter, parcel: BatchParcel) -> MirrorCharge:
    if parcel.one_by_one:
        return MirrorCharge()
    if parcel.level.charge is not None:
        return parcel.charge
    # A pool that is labelled without protection is listed once, with its first batch.
    first = (
        fetch_one("SELECT 1 FROM ledger_spend WHERE account = %s AND study = %s", sender.account, parcel.study.id)
        is None
    )
    return MirrorCharge(unprotected=first)


def _record_spend(sender: Submitter, parcel: BatchParcel, day: date) -> None:
    name = (random_id(), sender.account, parcel.study.id, parcel.level.name)
    if parcel.one_by_one:
        execute_rowcount(_ONE_BY_ONE, *name, parcel.level.epsilon[0], len(parcel.reports), day.isoformat())
    else:
        charge = parcel.charge
        charged = (None, None) if parcel.level.charge is None else (charge.epsilon, charge.rho)
        execute_rowcount(_SPEND, *name, *charged, day.isoformat())


def _count_reports(parcel: BatchParcel, batch: LeasedBatch, *, was_active: bool) -> list[int]:
    """Count one report for each task below its bound and say which; an active lease stops counting as load."""
    study, bound = parcel.study.id, pool_rules(parcel.study.opened)["max_reports"]
    lock_tasks(study, batch.tasks)
    if was_active:
        all_marks = ", ".join(["%s"] * len(batch.tasks))
        execute_rowcount(
            f"UPDATE pools_task SET load = load - 1 WHERE study = %s AND number IN ({all_marks})", study, *batch.tasks
        )
    tasks = sorted(parcel.reports)
    marks = ", ".join(["%s"] * len(tasks))
    counted = fetch_all(
        f"UPDATE pools_task SET n_reports = n_reports + 1, load = load + 1 "
        f"WHERE study = %s AND number IN ({marks}) AND n_reports < %s RETURNING number",
        study,
        *tasks,
        bound,
    )
    return sorted(number for (number,) in counted)


def _little_endian(values: array[int]) -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def _stored_receipt(parcel: BatchParcel, pseudonym: str) -> dict[str, Any] | None:
    """The receipt of an equal batch; a different one under this lease is refused."""
    found = fetch_one(
        "SELECT digest, idempotency, receipt, tasks, day FROM pools_batch "
        "WHERE lease = %s AND study = %s AND pseudonym = %s",
        parcel.lease,
        parcel.study.id,
        pseudonym,
    )
    if found is None:
        return None
    digest, idempotency, receipt, tasks, day = found
    if digest != parcel.digest:
        if idempotency == idempotency_digest(parcel.idempotency_key):
            raise Refusal("idempotency-conflict", "this Idempotency-Key was used for a different batch")
        raise Refusal("already-submitted", "you have sent this batch; the first one stands")
    [(n_leased,)] = fetch_all("SELECT COUNT(*) FROM pools_leasedtask WHERE lease = %s", parcel.lease)
    sent = day if not isinstance(day, str) else date.fromisoformat(day)
    return _receipt(parcel, receipt, len(bytes(tasks)) // 4, n_leased, sent)


def _receipt(parcel: BatchParcel, receipt: str, n_stored: int, n_leased: int, day: date) -> dict[str, Any]:
    charge = parcel.charge
    fields = {
        "receipt": receipt,
        "study": parcel.study.id,
        "study_sha256": parcel.study.opened.sha256,
        "batch": parcel.lease,
        "level": parcel.level.name,
        "n_reports": n_stored,
        "n_dropped": len(parcel.reports) - n_stored,
        "pay_cents": batch_pay(parcel.study.opened, parcel.level, n_leased),
        "accounting": "one-by-one" if parcel.one_by_one else "summed",
        "charge": None
        if parcel.level.charge is None
        else {"epsilon_nano": charge.epsilon, "rho_nano": charge.rho, "reports": len(parcel.reports)},
        "day": day.isoformat(),
    }
    return fields | {"signature": keys.sign(fields)}
