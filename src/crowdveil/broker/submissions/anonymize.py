"""Closing the intake of a study: after this nobody, the broker included, can tell whose reports are whose."""

from __future__ import annotations

from django.db import connection

from crowdveil.broker import key_escrow, keys
from crowdveil.broker.clock import today
from crowdveil.broker.db.transactions import alone_with_reports_of, changed, one_writer, write
from crowdveil.broker.ledger import reservations
from crowdveil.broker.submissions.acknowledged import forget_count

_COPY = """
CREATE TEMPORARY TABLE sealed AS SELECT id, study, pseudonym, level, codes, withdrawal_sha256
FROM intake_submission WHERE study = %s
"""
_PUT_BACK = """
INSERT INTO intake_submission (id, study, pseudonym, level, codes, withdrawal_sha256, receipt, idempotency, day)
SELECT id, study, pseudonym, level, codes, withdrawal_sha256, '', '', %s FROM sealed ORDER BY id
"""


def seal(study: str) -> None:
    """Release the holds, rewrite the rows and destroy the key. Safe to repeat after a crash at any point.

    Rows are written anew in the order of their random ids, in one transaction: neither the place of a row nor its
    transaction id tells any longer when it came in or which ledger row came with it. All get the day of closing: the
    ledger keeps the day of every spend, and a day on which one worker came would name their reports.
    """
    reservations.release_all(study)
    with write():
        alone_with_reports_of(study)
        changed(_COPY, study)
        changed("DELETE FROM intake_submission WHERE study = %s", study)
        changed(_PUT_BACK, today().isoformat())
        changed("DROP TABLE sealed")
    _forget_removed_rows()
    forget_count(study)
    key_escrow.erase(study)
    keys.destroy_study_key(study)


def _forget_removed_rows() -> None:
    """The old rows leave the files, too: PostgreSQL by VACUUM, SQLite by secure_delete and an emptied WAL."""
    with one_writer, connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("VACUUM intake_submission")
        else:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
