"""How a study looks to its requester."""

from __future__ import annotations

import json
from typing import Any

from crowdveil.broker.payments import study_escrow
from crowdveil.broker.payments.models import Purse
from crowdveil.broker.problems import Refusal
from crowdveil.broker.results.models import Batch
from crowdveil.broker.studies import quasi_identifiers
from crowdveil.broker.studies.channels import build_channels
from crowdveil.broker.studies.lifecycle import read_draft
from crowdveil.broker.studies.models import Study
from crowdveil.errors import InputError


def own_study(owner: str, key: str) -> Study:
    """A study of this requester; anybody else's does not exist."""
    study = Study.objects.filter(id=key, owner_id=owner).select_related("owner").first()
    if study is None:
        raise Refusal("not-found", "you have no such study")
    return study


def view(study: Study) -> dict[str, Any]:
    draft = read_draft(study)
    return {
        "id": study.id,
        "state": study.state,
        "draft": json.loads(study.draft),
        "sha256": study.sha256 or None,
        "guarantees": {level.name: _promise(draft, level) for level in draft.levels},
        "money": money(study),
        "warnings": quasi_identifiers.warnings_about(study.owner, also=quasi_identifiers.find_tags(draft)),
    }


def _promise(draft: Any, level: Any) -> str:
    """The weakest promise among the questions, or why the level cannot be offered, or is not known yet."""
    try:
        channels = build_channels(draft, level).values()
    except InputError as error:
        return f"cannot be offered: {error}"
    except Refusal as refusal:
        return f"not computed yet: {refusal}"
    return str(max((channel.guarantee for channel in channels), key=lambda guarantee: guarantee.epsilon))


def money(study: Study) -> dict[str, Any]:
    escrow = Purse.objects.filter(study=study.id).first()
    return study_escrow.serialize_escrow(
        escrow or Purse(study=study.id, budget=read_draft(study).budget_cents, quota=0)
    )


def progress(study: Study) -> dict[str, Any]:
    """How far a study is; counts are the requester's own money and places, never who."""
    escrow = Purse.objects.filter(study=study.id).first() or Purse(study=study.id, budget=0, quota=0)
    return {
        "state": study.state,
        "quota": escrow.quota,
        "taken": escrow.places_taken,
        "held": escrow.places_held,
        "money": money(study),
        "n_batches": Batch.objects.filter(study=study.id).count(),
    }
