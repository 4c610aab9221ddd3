"""The receipt of a submission: made from what is stored, signed, and the same for every retry."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from crowdveil.broker import keys
from crowdveil.broker.submissions.validation import ValidatedReports


@dataclass(frozen=True, slots=True)
class SubmissionReceipt:
    """What was received, what it pays and what it cost."""

    receipt: str
    study_sha256: str
    study: str
    level: str
    reports: ValidatedReports
    day: date

    def to_json(self) -> dict[str, Any]:
        charge = self.reports.charge
        fields = {
            "receipt": self.receipt,
            "study": self.study,
            "study_sha256": self.study_sha256,
            "level": self.level,
            "n_reports": self.reports.n_reports,
            "pay_cents": self.reports.pay_cents,
            "charge": None
            if charge.unprotected
            else {"epsilon_nano": charge.epsilon, "rho_nano": charge.rho, "reports": self.reports.n_charged},
            "day": self.day.isoformat(),
        }
        return fields | {"signature": keys.sign(fields)}
