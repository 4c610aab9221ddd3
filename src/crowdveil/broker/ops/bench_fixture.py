"""An open study with as many workers and submissions as wanted, written straight into the stores, to measure with."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from crowdveil.broker import clock
from crowdveil.broker.identity.models import Account, Token
from crowdveil.broker.identity.tokens import digest, issue
from crowdveil.broker.ledger.budget import compute_rho_cap
from crowdveil.broker.ledger.models import Budget
from crowdveil.broker.payments.models import Purse
from crowdveil.broker.studies import lifecycle, serializers
from crowdveil.broker.studies.draft import Draft
from crowdveil.broker.submissions.models import Submission


def fill(n_questions: int, n_workers: int, n_submissions: int) -> dict[str, Any]:
    """An open study with submissions, and the tokens of its requester and of workers who may still answer."""
    owner = Account.objects.create(role="requester", name=f"bench {secrets.token_hex(4)}")
    study = lifecycle.start(lifecycle.create(owner, Draft.model_validate(_draft(n_questions))))
    _add_submissions(study.id, n_questions, n_submissions)
    opened = serializers.read_opened(study)
    return {
        "study": study.id,
        "sha256": study.sha256,
        "channels": dict(zip(opened.questions, opened.levels["medium"].channels, strict=True)),
        "tokens": _add_workers(n_workers),
        "requester": _token(owner, "requester"),
    }


def _token(account: Any, scope: str) -> str:
    return issue(account, scope=scope, expires=clock.after(days=1))[0]


def _add_workers(n: int) -> list[str]:
    cap = 100 * 10**9
    texts = [f"cv_worker_{secrets.token_urlsafe(32)}" for _ in range(n)]
    accounts = Account.objects.bulk_create([Account(role="worker") for _ in texts], batch_size=500)
    Budget.objects.bulk_create(
        [Budget(account=each.id, epsilon_cap=cap, rho_cap=compute_rho_cap(cap)) for each in accounts], batch_size=500
    )
    expires = clock.after(days=1)
    Token.objects.bulk_create(
        [
            Token(account=account, digest=digest(text), scope="worker", expires=expires)
            for account, text in zip(accounts, texts, strict=True)
        ],
        batch_size=500,
    )
    return texts


def _add_submissions(study: str, n_questions: int, n: int) -> None:
    generator = np.random.default_rng()
    for start in range(0, n, 10_000):
        size = min(10_000, n - start)
        codes = generator.choice(5, size=(size, n_questions), p=[0.4, 0.3, 0.1, 0.1, 0.1]).astype("<u2")
        Submission.objects.bulk_create(
            [
                Submission(
                    study=study,
                    pseudonym=secrets.token_hex(32),
                    level=0,
                    codes=row.tobytes(),
                    withdrawal_sha256=secrets.token_hex(32),
                )
                for row in codes
            ],
            batch_size=100,
        )
    Purse.objects.filter(study=study).update(places_taken=n)


def _draft(n_questions: int) -> dict[str, Any]:
    options = {"type": "choices", "options": ["a", "b", "c", "d", "e"]}
    return {
        "title": "A study to measure with",
        "purpose": "Load.",
        "consent_text": "None is needed.",
        "quota": 10**7,
        "minimum_n": 100,
        "budget_cents": 10**12,
        "questions": [{"id": f"q{number}", "text": "Which?", "domain": options} for number in range(n_questions)],
        "levels": [{"name": "medium", "mechanism": "randomized-response", "epsilon": "1", "pay_cents": 20}],
    }
