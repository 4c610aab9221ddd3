"""Withdrawal by a key that only the device holds: the reports go, pay already earned stays."""

from __future__ import annotations

import hashlib

from crowdveil.broker.db.transactions import study_lock, write_transaction
from crowdveil.broker.problems import Refusal
from crowdveil.broker.results.quality import forget
from crowdveil.broker.submissions.models import Submission, Withdrawal


def withdraw(study: str, withdrawal_key: str) -> None:
    """Erase the submission that this key belongs to. Privacy already spent is not given back, nor is pay."""
    digest = hashlib.sha256(bytes.fromhex(withdrawal_key)).hexdigest()
    with write_transaction():
        study_lock(study)
        mine = Submission.objects.filter(study=study, withdrawal_sha256=digest)
        name = mine.values_list("pseudonym", flat=True).first()
        if name is not None:
            mine.delete()
            forget(study, name)
            Withdrawal.objects.get_or_create(withdrawal_sha256=digest, defaults={"study": study})
        elif not Withdrawal.objects.filter(withdrawal_sha256=digest, study=study).exists():
            raise Refusal("not-found", "no submission to this study belongs to this withdrawal key")
