"""Who may answer which study."""

from __future__ import annotations

from typing import Any

from crowdveil.broker.ledger.models import Reservation, Spend
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.definition_cache import Frozen
from crowdveil.broker.studies.models import Invitation, Study
from crowdveil.broker.studies.serializers import card


def check_invited(study: Frozen, account: str) -> None:
    """Whoever comes first may answer, unless the broker chooses the workers of this study."""
    if study.opened.document["selection"]["policy"] == "first-come":
        return
    if not Invitation.objects.filter(study_id=study.id, account_id=account).exists():
        raise Refusal("not-invited", "the workers of this study are chosen, and you are not among them")


def cards_for(account: str) -> list[dict[str, Any]]:
    """Open studies that this worker may answer, and those that were answered."""
    submitted = set(Spend.objects.filter(account=account).values_list("study", flat=True))
    reserved = set(Reservation.objects.filter(account=account).values_list("study", flat=True))
    invited = set(Invitation.objects.filter(account_id=account).values_list("study_id", flat=True))
    studies = Study.objects.filter(state__in=("pilot", "open")) | Study.objects.filter(id__in=submitted)
    cards = []
    for study in studies.select_related("owner").order_by("id"):
        shown = card(study)
        mine = shown["selection"] == "first-come" or study.id in invited
        if mine or study.id in submitted:
            status = "submitted" if study.id in submitted else "reserved" if study.id in reserved else "new"
            cards.append(shown | {"invited": study.id in invited, "status": status})
    return cards
