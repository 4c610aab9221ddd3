"""Who may answer which study."""

from __future__ import annotations

from typing import Any

from crowdveil.broker.ledger.models import Reservation, Spend
from crowdveil.broker.pools.models import Pool
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.definition_cache import FrozenStudy
from crowdveil.broker.studies.models import Invitation, Study
from crowdveil.broker.studies.serializers import card


def check_invited(study: FrozenStudy, account: str) -> None:
    """Whoever comes first may answer, unless the broker chooses the workers of this study."""
    if study.opened.document["selection"]["policy"] == "first-come":
        return
    if not Invitation.objects.filter(study_id=study.id, account_id=account).exists():
        raise Refusal("not-invited", "the workers of this study are chosen, and you are not among them")


def cards_for(account: str, kind: str = "survey") -> list[dict[str, Any]]:
    """Open studies of one kind that this worker may answer, and those that were answered.

    A pool can be answered again and again, so its status is never more than reserved.
    """
    submitted = set(Spend.objects.filter(account=account).values_list("study", flat=True))
    reserved = set(Reservation.objects.filter(account=account).values_list("study", flat=True))
    invited = set(Invitation.objects.filter(account_id=account).values_list("study_id", flat=True))
    pools = Pool.objects.values("study")
    studies = Study.objects.filter(state__in=("pilot", "open")) | Study.objects.filter(id__in=submitted)
    studies = studies.filter(id__in=pools) if kind == "tasks" else studies.exclude(id__in=pools)
    cards = []
    for study in studies.select_related("owner").order_by("id"):
        shown = card(study)
        mine = shown["selection"] == "first-come" or study.id in invited
        if mine or study.id in submitted:
            done = study.id in submitted and kind == "survey"
            status = "submitted" if done else "reserved" if study.id in reserved else "new"
            cards.append(shown | {"invited": study.id in invited, "status": status})
    return cards
