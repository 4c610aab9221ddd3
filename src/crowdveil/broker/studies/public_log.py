"""The public log: every definition ever opened, each line naming the hash of the one before."""

from __future__ import annotations

from typing import Any

from crowdveil.broker.clock import today
from crowdveil.broker.db.transactions import PUBLIC_LOG, chain_lock
from crowdveil.broker.studies.models import LogEntry
from crowdveil.canonical_json import sha256_hex

GENESIS = "0" * 64


def append(study: str, sha256: str) -> LogEntry:
    """Inside the transaction that opens the study."""
    chain_lock(PUBLIC_LOG)
    last = LogEntry.objects.order_by("-index").first()
    entry = LogEntry(
        index=last.index + 1 if last else 1,
        study=study,
        sha256=sha256,
        day=today(),
        previous=last.entry if last else GENESIS,
    )
    entry.entry = sha256_hex(_fields(entry))
    entry.save(force_insert=True)
    return entry


def serialize_entry(entry: LogEntry) -> dict[str, Any]:
    return _fields(entry) | {"entry": entry.entry}


def _fields(entry: LogEntry) -> dict[str, Any]:
    return {
        "index": entry.index,
        "study": entry.study,
        "sha256": entry.sha256,
        "day": entry.day.isoformat(),
        "previous": entry.previous,
    }
