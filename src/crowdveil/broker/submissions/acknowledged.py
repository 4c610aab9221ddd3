"""How many submissions of each open study were acknowledged, counted outside the database.

A disk that spoils a frame of the write-ahead log makes the database forget it and every one after, and say nothing.
So each study has a file that grows by one byte with every receipt, written through to the disk before the receipt
leaves. Its length is all that it holds: no worker, no order, no time. At a start it is compared with the database.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from crowdveil.broker.audit_log.chain import record
from crowdveil.broker.db.transactions import fetch_one, write_transaction
from crowdveil.broker.keys import put_new, replace_file
from crowdveil.broker.studies.models import Study

_COUNT = """
SELECT (SELECT COUNT(*) FROM intake_submission WHERE study = %s)
    + (SELECT COUNT(*) FROM intake_withdrawal WHERE study = %s)
    + (SELECT COUNT(*) FROM pools_batch WHERE study = %s)
"""
_log = logging.getLogger("crowdveil.submissions")


@dataclass(frozen=True, slots=True)
class Loss:
    """Submissions of a study that were acknowledged and are gone."""

    study: str
    n_lost: int
    n_acknowledged: int

    def __str__(self) -> str:
        return (
            f"study {self.study} has lost {self.n_lost} of {self.n_acknowledged} acknowledged submissions, their pay "
            "and their charges; the database was damaged or set back"
        )


def start_count(study: str, n_stored: int = 0) -> None:
    put_new(Path(_path(study)), b"." * n_stored)


def count_acknowledged(study: str) -> None:
    """Count one more, after its transaction and before its receipt leaves.

    A crash in between leaves the count too small, which never gives a false alarm.
    """
    try:
        file = os.open(_path(study), os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, b".")
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        # The submission is stored; a receipt that is not counted is better than none.
        _log.warning("an acknowledged submission was not counted", extra={"error": type(error).__name__})


def forget_count(study: str) -> None:
    """The study is closed: nothing is acknowledged any more."""
    Path(_path(study)).unlink(missing_ok=True)


def find_losses() -> list[Loss]:
    """At a start: compare the counts of open studies with the database, note losses in the audit log, and count on."""
    losses = []
    for study in Study.objects.filter(state__in=("pilot", "open")).values_list("id", flat=True):
        path = Path(_path(study))
        # The file first: whatever it counts was in the database before.
        n_acknowledged = path.stat().st_size if path.exists() else None
        [n_stored] = fetch_one(_COUNT, study, study, study) or (0,)
        if n_acknowledged is None:
            start_count(study, n_stored)
        elif n_stored < n_acknowledged:
            losses.append(Loss(study, n_acknowledged - n_stored, n_acknowledged))
            with write_transaction():
                record("", f"study.lost-{n_acknowledged - n_stored}", study)
            replace_file(path, b"." * n_stored)
    return losses


def _path(study: str) -> str:
    return f"{settings.DATA_DIR}/acknowledged/{study}"
