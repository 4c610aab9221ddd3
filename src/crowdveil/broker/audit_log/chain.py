"""Writing the audit log, and proving that nothing in it was changed."""

from __future__ import annotations

from typing import Any

from crowdveil.broker.audit_log.models import Act
from crowdveil.broker.clock import iso, now
from crowdveil.broker.db.transactions import AUDIT, chain_lock
from crowdveil.canonical_json import sha256_hex

GENESIS = "0" * 64


def record(actor: str, verb: str, subject: str) -> None:
    """Append one act, inside the transaction of the act itself."""
    chain_lock(AUDIT)
    last = Act.objects.order_by("-index").first()
    act = Act(
        index=last.index + 1 if last else 1,
        at=now().replace(microsecond=0),
        actor=actor,
        verb=verb,
        subject=subject,
        previous=last.entry if last else GENESIS,
    )
    act.entry = sha256_hex(_fields(act))
    act.save(force_insert=True)


def first_broken() -> int | None:
    """The index of the first act that does not follow from the one before, or None."""
    previous, expected = GENESIS, 1
    for act in Act.objects.order_by("index").iterator():
        if act.index != expected or act.previous != previous or act.entry != sha256_hex(_fields(act)):
            return expected
        previous, expected = act.entry, expected + 1
    return None


def serialize_act(act: Act) -> dict[str, Any]:
    return _fields(act) | {"entry": act.entry}


def _fields(act: Act) -> dict[str, Any]:
    return {
        "index": act.index,
        "at": iso(act.at),
        "actor": act.actor,
        "verb": act.verb,
        "subject": act.subject,
        "previous": act.previous,
    }
