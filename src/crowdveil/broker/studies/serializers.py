"""How a study looks to those who may answer it."""

from __future__ import annotations

from typing import Any

from crowdveil.broker import keys
from crowdveil.broker.payments.models import Purse
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies import public_log, quasi_identifiers
from crowdveil.broker.studies.definition import Definition, read_definition
from crowdveil.broker.studies.models import LogEntry, Study


def read_opened(study: Study) -> Definition:
    return read_definition(study.definition, study.sha256)


def public_study(key: str) -> Study:
    """A study with a public definition: anything but a draft."""
    study = Study.objects.filter(id=key).exclude(state="draft").select_related("owner").first()
    if study is None:
        raise Refusal("not-found", "there is no such study, or it is not public yet")
    return study


def card(study: Study) -> dict[str, Any]:
    document = read_opened(study).document
    names = ("id", "title", "purpose", "requester", "linkable", "protects_participation")
    return {name: document[name] for name in names} | {
        "kind": document.get("kind", "survey"),
        "state": study.state,
        "sha256": study.sha256,
        "n_questions": len(document["questions"]),
        "selection": document["selection"]["policy"],
        "levels": [{name: level[name] for name in level if name != "channels"} for level in document["levels"]],
        "warnings": quasi_identifiers.warnings_about(study.owner),
        "places": has_places(study.id),
    }


def has_places(study: str) -> bool:
    """Whether anybody may still join; never how many have."""
    purse = Purse.objects.filter(study=study).first()
    return purse is not None and purse.accepting and purse.places_taken + purse.places_held < purse.quota


def serialize_signed(study: Study) -> dict[str, Any]:
    return {
        "definition": read_opened(study).document,
        "sha256": study.sha256,
        "signature": study.signature,
        "public_key": keys.public_key(),
        "log": public_log.serialize_entry(LogEntry.objects.get(study=study.id)),
        "state": study.state,
        "warnings": quasi_identifiers.warnings_about(study.owner),
        "places": has_places(study.id),
    }
