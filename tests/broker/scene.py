"""An open study inside this process, with everything needed to submit to it."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass
class Report:
    question: str
    channel: str
    report: int


class Scene:
    """An open study with everything needed to submit to it."""

    def __init__(self, draft: dict[str, Any], owner: Any = None, *, pilot: bool = False) -> None:
        from crowdveil.broker.identity.models import Account
        from crowdveil.broker.studies import lifecycle
        from crowdveil.broker.studies.definition_cache import get_frozen_study
        from crowdveil.broker.studies.draft import Draft

        self.owner = owner or Account.objects.create(role="requester", name=f"lab {secrets.token_hex(6)}")
        self.study = lifecycle.create(self.owner, Draft.model_validate(draft))
        (lifecycle.start_pilot if pilot else lifecycle.start)(self.study)
        self.frozen = get_frozen_study(self.study.id)
        self.opened = self.frozen.opened

    def worker(self, epsilon_cap: float = 100.0, level: str = "medium") -> Any:
        from crowdveil.broker.identity.accounts import sign_up_worker

        return sign_up_worker(level, int(epsilon_cap * 10**9))

    def reserve(self, account: Any, level: str = "medium") -> Any:
        from crowdveil.broker.ledger.reservations import reserve

        return reserve(account.id, self.opened, self.opened.levels[level])[0]

    def submit(self, account: Any, codes: dict[str, int], level: str = "medium") -> dict[str, Any]:
        from crowdveil.broker.submissions.submit import Submitter, ValidatedSubmission, submit
        from crowdveil.broker.submissions.validation import check

        chosen = self.opened.levels[level]
        reports = [Report(q, chosen.channels[self.opened.position[q]], code) for q, code in codes.items()]
        self.withdrawal_key = secrets.token_bytes(32)
        digest = hashlib.sha256(self.withdrawal_key).hexdigest()
        parcel = ValidatedSubmission(
            self.frozen, chosen, check(self.opened, chosen, reports), digest, secrets.token_hex(16)
        )
        return submit(Submitter(account.id, account.payee), parcel)[0].to_json()

    def budget(self, account: Any) -> Any:
        from crowdveil.broker.ledger.models import Budget

        return Budget.objects.get(account=account.id)

    def estimates(self) -> dict[str, Any]:
        from crowdveil.broker.results.estimates import estimate
        from crowdveil.broker.results.tables import everything

        return estimate(self.study.id, self.opened, everything(self.study.id, self.opened))

    def purse(self) -> Any:
        from crowdveil.broker.payments.models import Purse

        return Purse.objects.get(study=self.study.id)


def refused(code: str) -> Any:
    from crowdveil.broker.problems import Refusal

    class Expected:
        def __enter__(self) -> None:
            self._raises = pytest.raises(Refusal)
            self._found = self._raises.__enter__()

        def __exit__(self, *details: Any) -> bool:
            caught = bool(self._raises.__exit__(*details))
            assert self._found.value.code == code, self._found.value
            return caught

    return Expected()


def books_balance() -> None:
    from crowdveil.broker.ledger.check import problems

    assert problems() == []
