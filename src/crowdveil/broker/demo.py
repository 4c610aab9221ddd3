"""The demonstration: a requester, and a study that is worth answering."""

from __future__ import annotations

from crowdveil.broker.identity.links import issue_link
from crowdveil.broker.identity.models import Account
from crowdveil.broker.studies import lifecycle
from crowdveil.broker.studies.draft import Draft
from crowdveil.broker.studies.models import Study
from crowdveil.broker.studies.requester_serializers import progress

_NAME = "Demo requester"
_DRAFT = {
    "title": "Going to work ill",
    "purpose": "How many people work while they are ill, and why they do it.",
    "goal": "population",
    "consent_text": (
        "Your device randomises every answer before it leaves, skipped questions included. Nobody, this broker "
        "included, can know what you answered. You can withdraw at any time and keep your pay."
    ),
    "protects_participation": True,
    "minimum_n": 30,
    "quota": 2000,
    "budget_cents": 200_000,
    "questions": [
        {
            "id": "worked_ill",
            "text": "Did you work while you were ill during the last year?",
            "domain": {"type": "choices", "options": ["no", "yes"]},
        },
        {
            "id": "reasons",
            "text": "What makes people at your workplace come in ill? Tick all that apply.",
            "domain": {"type": "tick-all", "boxes": ["money", "deadline"]},
        },
    ],
    # Two questions leave enough of a budget of 4 that a hundred people say something.
    "levels": [
        {"name": "low", "mechanism": "randomized-response", "epsilon": "1.9", "pay_cents": 40},
        {"name": "medium", "mechanism": "randomized-response", "epsilon": "1.5", "pay_cents": 30},
        {"name": "high", "mechanism": "randomized-response", "epsilon": "1", "pay_cents": 20},
    ],
}


def demo_study() -> tuple[str, int]:
    """The id of the open demo study, and how many have answered it already."""
    owner, _ = Account.objects.get_or_create(name=_NAME, defaults={"role": "requester"})
    study = Study.objects.filter(owner=owner, state="open").order_by("id").first()
    if study is None:
        study = lifecycle.start(lifecycle.create(owner, Draft.model_validate(_DRAFT)))
    return study.id, int(progress(study)["taken"])


def demo_link() -> str:
    """What a link carries that signs in as the demo requester, once."""
    return issue_link(Account.objects.get(name=_NAME), minutes=24 * 60)
