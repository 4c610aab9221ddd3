"""One transaction per submission: the ledger, the money and the reports change together or not at all.

Every limit is a condition of the UPDATE that moves the number, and its row count is checked; a retry finds what was
stored and gets the same receipt. A row that is there already is no error of the database's either: PostgreSQL would
write the whole statement into its log, reports included.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import date

from crowdveil.broker import clock
from crowdveil.broker.db.roles import inside
from crowdveil.broker.db.transactions import changed, row, write
from crowdveil.broker.ids import random_id
from crowdveil.broker.ledger import budget, reservations
from crowdveil.broker.ledger.budget import NOTHING
from crowdveil.broker.payments import earnings, study_escrow
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.definition import OpenedLevel
from crowdveil.broker.studies.definition_cache import Frozen
from crowdveil.broker.submissions.acknowledged import count_acknowledged
from crowdveil.broker.submissions.pseudonyms import pseudonym_in
from crowdveil.broker.submissions.receipts import SubmissionReceipt
from crowdveil.broker.submissions.validation import Checked

_STORE = """
INSERT INTO intake_submission
    (id, study, pseudonym, level, codes, withdrawal_sha256, receipt, idempotency, day)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT DO NOTHING
"""
_SPEND = """
INSERT INTO ledger_spend (id, account, study, level, epsilon, rho, day) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT DO NOTHING
"""
_CONSENT = """
INSERT INTO identity_consent (id, account_id, study, version, day) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (account_id, study) DO UPDATE SET version = excluded.version
"""


class Taken(Exception):
    """A row that must be new is there already."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Who submits: known to the ledger by account, to the payments by payee, to the intake by neither."""

    account: str
    payee: str


@dataclass(frozen=True, slots=True)
class Parcel:
    """A checked submission on its way into the store."""

    study: Frozen
    level: OpenedLevel
    reports: Checked
    withdrawal_sha256: str
    idempotency_key: str


def submit(sender: Sender, parcel: Parcel) -> tuple[SubmissionReceipt, bool]:
    """The receipt, and whether the submission was stored by this call."""
    pseudonym = pseudonym_in(parcel.study, sender.account)
    if (stored := _stored(parcel, pseudonym)) is not None:
        return stored, False
    try:
        receipt = _store(sender, parcel, pseudonym)
    except (Taken, Refusal) as refused:
        # The twin of this request may have been stored while this one was on its way.
        if (stored := _stored(parcel, pseudonym)) is not None:
            return stored, False
        if isinstance(refused, Taken):
            raise _already_spent(sender, parcel) from None
        raise
    count_acknowledged(parcel.study.id)
    return receipt, True


def _store(sender: Sender, parcel: Parcel, pseudonym: str) -> SubmissionReceipt:
    study, reports, day = parcel.study.id, parcel.reports, clock.today()
    receipt = random_id()
    with write():
        with inside("ledger"):
            # Looked for under the lock: a hold that appeared after an earlier look would never be settled.
            budget.lock(sender.account)
            hold = reservations.find(study, sender.account)
            budget.settle(sender.account, reports.charge, hold.charge if hold else NOTHING)
            if hold is not None and not reservations.take(hold):
                raise budget.hold_gone()
            charged = (None, None) if reports.charge.unprotected else (reports.charge.epsilon, reports.charge.rho)
            _put(_SPEND, random_id(), sender.account, study, parcel.level.name, *charged, day.isoformat())
        with inside("intake"):
            row_values = (random_id(), study, pseudonym, parcel.level.number, reports.codes, parcel.withdrawal_sha256)
            _put(_STORE, *row_values, receipt, idempotency_digest(parcel.idempotency_key), day.isoformat())
        with inside("identity"):
            version = parcel.study.opened.document["consent"]["version"]
            changed(_CONSENT, random_id(), sender.account, study, version, day.isoformat())
        with inside("payments"):
            earnings.earn(sender.payee, reports.pay_cents)
            # Last, because everybody who answers this study waits for this one row.
            study_escrow.settle(study, reports.pay_cents, hold.cost if hold else None)
    return SubmissionReceipt(receipt, parcel.study.opened.sha256, study, parcel.level.name, reports, day)


def _put(statement: str, *values: object) -> None:
    if not changed(statement, *values):
        raise Taken


def idempotency_digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _stored(parcel: Parcel, pseudonym: str) -> SubmissionReceipt | None:
    """The receipt of an equal submission; a different one under this name is refused."""
    found = row(
        "SELECT receipt, level, codes, withdrawal_sha256, idempotency, day FROM intake_submission "
        "WHERE study = %s AND pseudonym = %s",
        parcel.study.id,
        pseudonym,
    )
    if found is None:
        return None
    receipt, level, codes, withdrawal_sha256, idempotency, day = found
    same = (level, bytes(codes), withdrawal_sha256) == (
        parcel.level.number,
        parcel.reports.codes,
        parcel.withdrawal_sha256,
    )
    if same:
        return SubmissionReceipt(
            receipt, parcel.study.opened.sha256, parcel.study.id, parcel.level.name, parcel.reports, _day(day)
        )
    if idempotency == idempotency_digest(parcel.idempotency_key):
        raise Refusal("idempotency-conflict", "this Idempotency-Key was used for a different submission")
    raise Refusal("already-submitted", "you have answered this study; the first submission stands")


def _day(stored: date | str) -> date:
    return stored if not isinstance(stored, str) else date.fromisoformat(stored)


def _already_spent(sender: Sender, parcel: Parcel) -> Refusal:
    spent = row("SELECT 1 FROM ledger_spend WHERE account = %s AND study = %s", sender.account, parcel.study.id)
    if spent:
        return Refusal("withdrawn", "you answered this study and withdrew; it can be answered once")
    return Refusal("already-submitted", "this withdrawal key or submission is already in use; make a new one")
