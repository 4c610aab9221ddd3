"""Withdrawing a batch, and closing a pool: afterwards nobody can tell who was leased what."""

from __future__ import annotations

import hashlib

from django.db import connection

from crowdveil.broker.clock import today
from crowdveil.broker.db.transactions import execute_rowcount, study_lock, write_transaction, writer_lock
from crowdveil.broker.pools.models import Batch
from crowdveil.broker.problems import Refusal
from crowdveil.broker.submissions.models import Withdrawal

_COPY = """
CREATE TEMPORARY TABLE sealed_batches AS SELECT id, study, pseudonym, level, tasks, codes, withdrawal_sha256
FROM pools_batch WHERE study = %s
"""
_PUT_BACK = """
INSERT INTO pools_batch
    (id, study, pseudonym, level, tasks, codes, withdrawal_sha256, lease, digest, receipt, idempotency, counted, day)
SELECT id, study, pseudonym, level, tasks, codes, withdrawal_sha256, '', '', '', '', 0, %s
FROM sealed_batches ORDER BY id
"""
_FORGET = (
    "DELETE FROM pools_lease WHERE study = %s",
    "DELETE FROM pools_leasedtask WHERE study = %s",
    "UPDATE pools_workercode SET pseudonym = '' WHERE study = %s",
    "UPDATE pools_task SET load = n_reports WHERE study = %s",
)


def withdraw_batch(study: str, withdrawal_key: str) -> None:
    """Erase the batch that this key belongs to. Its tasks stay counted; privacy spent and pay are not given back."""
    digest = hashlib.sha256(bytes.fromhex(withdrawal_key)).hexdigest()
    with write_transaction():
        study_lock(study)
        removed, _ = Batch.objects.filter(study=study, withdrawal_sha256=digest).delete()
        if removed:
            Withdrawal.objects.get_or_create(withdrawal_sha256=digest, defaults={"study": study})
        elif not Withdrawal.objects.filter(withdrawal_sha256=digest, study=study).exists():
            raise Refusal("not-found", "no batch of this pool belongs to this withdrawal key")


def seal_pool(study: str) -> None:
    """Forget leases and worker codes, and write the batches anew in the order of their random ids. Safe to repeat."""
    with write_transaction():
        study_lock(study)
        execute_rowcount(_COPY, study)
        execute_rowcount("DELETE FROM pools_batch WHERE study = %s", study)
        execute_rowcount(_PUT_BACK, today().isoformat())
        execute_rowcount("DROP TABLE sealed_batches")
        for statement in _FORGET:
            execute_rowcount(statement, study)
    with writer_lock, connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            for table in ("pools_batch", "pools_lease", "pools_leasedtask", "pools_workercode"):
                cursor.execute(f"VACUUM {table}")
        else:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
