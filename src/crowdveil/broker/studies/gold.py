"""Gold questions: their truths are committed to before anybody answers, and shown only when it is over.

Nothing about gold runs on the device, so nothing about it can leak there; workers are scored from their reports.
"""

from __future__ import annotations

import json
import secrets

from crowdveil.broker.studies.draft import Draft
from crowdveil.canonical_json import canonical, sha256_hex


def commit_gold(draft: Draft) -> tuple[str, str | None]:
    """What is kept secret, and the commitment that stands in the definition; ("", None) without gold."""
    return commit({question.id: question.gold for question in draft.questions if question.gold is not None})


def commit(truths: dict[str, str]) -> tuple[str, str | None]:
    """The salted commitment to the truths of some questions or tasks."""
    if not truths:
        return "", None
    secret = {"salt": secrets.token_hex(32), "truths": truths}
    return canonical(secret).decode(), sha256_hex(secret)


def read_truths(kept: str) -> dict[str, str]:
    return dict(json.loads(kept)["truths"]) if kept else {}
