"""Backups of either database into one file, without the keys that link reports to workers.

A stolen backup of an open study therefore names nobody. The price: a broker restored on another machine cannot go on
with studies that were open, because it could not recognise a worker who has answered; they come back closed, unless
their keys come from a key escrow.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core import serializers
from django.core.serializers.base import DeserializationError
from django.db import connection

from crowdveil.broker import keys
from crowdveil.broker.audit_log.chain import record
from crowdveil.broker.db.transactions import write
from crowdveil.broker.identity import totp_secrets
from crowdveil.broker.identity.models import Account
from crowdveil.broker.payments.models import Purse
from crowdveil.broker.results.batches import keep_as_final
from crowdveil.broker.studies.lifecycle import estimate_finally, seal_study
from crowdveil.broker.studies.models import Study
from crowdveil.errors import FileError

FORMAT = "crowdveil-backup/1"
# In the order in which rows may refer to each other.
_STORES = ("identity", "studies", "ledger", "payments", "intake", "pools", "results", "audit", "hooks")
_BATCH = 1000


def backup(path: Path) -> int:
    """Write everything as of one moment; returns the number of rows."""
    n_rows = 0
    # For nobody else's eyes from the first byte on: it holds the signing key and what people sign in with.
    private = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
    with private, gzip.open(private, "wt", encoding="utf-8") as file, _one_moment():
        head = {"format": FORMAT, "schema": _schema(), "signing_key": keys.signing_seed().hex()}
        head["totp_key"] = keys.totp_key().hex()
        file.write(json.dumps(head) + "\n")
        for line in _lines():
            file.write(line)
            n_rows += 1
    return n_rows


@contextmanager
def _one_moment() -> Iterator[None]:
    """All reads see the same state, and nobody who writes has to wait."""
    begin = "BEGIN ISOLATION LEVEL REPEATABLE READ" if connection.vendor == "postgresql" else "BEGIN DEFERRED"
    with connection.cursor() as cursor:
        cursor.execute(begin)
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


def _lines() -> Iterator[str]:
    for store in _STORES:
        for model in apps.get_app_config(store).get_models():
            rows = model._default_manager.order_by("pk").iterator(chunk_size=_BATCH)
            for row in rows:
                yield serializers.serialize("jsonl", [row])


def _schema() -> list[str]:
    """The migrations that the rows were written under."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations ORDER BY app, name")
        return [f"{app}.{name}" for app, name in cursor.fetchall() if app in _STORES]


def open_studies(path: Path) -> list[str]:
    """The studies that were open when the backup was made."""
    with _reading(path) as file:
        _head(file.readline())
        lines = (json.loads(line) for line in file if '"studies.study"' in line)
        return [line["pk"] for line in lines if line["fields"]["state"] in ("pilot", "open")]


def restore(path: Path, study_keys: Mapping[str, bytes]) -> tuple[int, list[str]]:
    """Fill an empty broker; returns the number of rows and the studies that had to be closed.

    `study_keys` come from a key escrow: studies that have one there go on.
    """
    if Account.objects.exclude(role="operator").exists() or Study.objects.exists():
        raise FileError("a backup is restored into an empty broker; this one has accounts", fix="choose another place")
    with _reading(path) as file:
        head = _head(file.readline())
        n_rows = _load(file)
    keys.put_signing_seed(bytes.fromhex(head["signing_key"]))
    if "totp_key" in head:
        keys.put_totp_key(bytes.fromhex(head["totp_key"]))
    totp_secrets.encrypt_plain_secrets(Account)
    for study in Study.objects.filter(state__in=("pilot", "open"), id__in=study_keys):
        keys.put_study_key(study.id, study_keys[study.id])
    keep_as_final(list(Study.objects.filter(state__in=("closed", "published")).values_list("id", flat=True)))
    return n_rows, _close_nameless()


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield file
    except (OSError, EOFError, UnicodeDecodeError, DeserializationError, ValueError) as error:
        raise FileError(f"{path.name} cannot be read as a backup: {error}") from None


def _head(line: str) -> dict[str, Any]:
    head = json.loads(line)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise ValueError(f"it must begin with the format {FORMAT!r}")
    unknown = sorted(set(head["schema"]) - set(_schema()))
    if unknown:
        raise ValueError(f"it was written by a newer crowdveil (migration {unknown[0]}); update first")
    return head


def _load(file: Any) -> int:
    n_rows = 0
    with write():
        # The first operator that a fresh place was given makes room for the accounts of the backup.
        Account.objects.all().delete()
        apps.get_model("audit", "Act").objects.all().delete()
        rows = (row.object for row in serializers.deserialize("jsonl", file))
        for model, batch in groupby(rows, attrgetter("_meta.model")):
            while some := list(islice(batch, _BATCH)):
                model._default_manager.bulk_create(some)
                n_rows += len(some)
    return n_rows


def _close_nameless() -> list[str]:
    """Close the studies whose key is not here."""
    closed = []
    for study in Study.objects.filter(state__in=("pilot", "open")):
        if not keys.has_study_key(study.id):
            with write():
                Purse.objects.filter(study=study.id).update(accepting=False)
                Study.objects.filter(id=study.id).update(state="closed")
                record(study.owner_id, "study.closed-by-restore", study.id)
            study.refresh_from_db()
            seal_study(study)
            estimate_finally(study)
            closed.append(study.id)
    return closed
