"""Labelling the tasks of a pool: verify each task, charge the batch, draw once, store, send exactly that.

Which tasks were leased to this device is the broker's choice and visible to it. What the device checks is that every
task stands in the list that the signed definition names, and that none is asked twice.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from crowdveil.accounting import Ledger, Spend, Storage
from crowdveil.canonical_json import canonical
from crowdveil.client.account import Account
from crowdveil.client.device_state import Memory
from crowdveil.client.http import ProblemError
from crowdveil.client.questions import code_of
from crowdveil.client.study import Level, Study, StudyError, check_signature
from crowdveil.domain import EMPTY
from crowdveil.entropy import Entropy
from crowdveil.errors import InputError
from crowdveil.merkle import leaf_hash, verify_inclusion
from crowdveil.sampler import draw

_ME = "me"
_LEAF_FIELDS = ("id", "text", "text_b", "alt", "image", "audio")
_MIN_TIME_LEFT = timedelta(minutes=1)
"""A lease with less time left is renewed before anything is charged."""


@dataclass(frozen=True, slots=True)
class PoolTask:
    """One task as a worker sees it; `number` is its place in the list."""

    number: int
    id: str
    text: str
    text_b: str | None = None
    alt: str | None = None


def task_leaf(task: dict[str, Any]) -> bytes:
    """The bytes that a Merkle leaf is the hash of."""
    return canonical({name: task.get(name) for name in _LEAF_FIELDS})


def ceiling_fact(study: str) -> str:
    return f"ceiling {study}"


class Sitting:
    """One device labelling in one pool at one level."""

    def __init__(
        self,
        study: Study,
        level: Level,
        account: Account,
        memory: Memory,
        storage: Storage,
        ledger: Ledger,
        entropy: Entropy,
        public_key: str,
    ) -> None:
        assert study.pool is not None
        self._study, self._level, self._rules = study, level, study.pool
        self._account, self._memory, self._storage = account, memory, storage
        self._ledger, self._entropy, self._public_key = ledger, entropy, public_key
        self._form = study.questions[0]
        self._channel = level.channels[self._form["id"]]

    def label(
        self, answer: Callable[[PoolTask], Any], *, batches: int, accounting: str, worker_code: str | None
    ) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """(what was sent, receipt) of each batch; fewer than asked for where no task is left."""
        if accounting == "one-by-one" and not self._rules["tasks_about_items"]:
            raise InputError("tasks of this pool may be about the worker, so its answers are counted together")
        sent = [self._send(*pending)] if (pending := self._pending()) is not None else []
        request = {"level": self._level.name, "study_sha256": self._study.sha256, "accounting": accounting}
        if worker_code is not None:
            request["worker_code"] = worker_code
        while len(sent) < batches:
            try:
                batch = self._account.call("POST", f"/studies/{self._study.id}/batches", request)
            except ProblemError as refused:
                if refused.code == "no-tasks":
                    break
                raise
            tasks = self._check_tasks(batch)
            codes = self._answer_codes({task.number: answer(task) for task in tasks})
            self._renew(batch, request)
            sent.append(self._send(batch["batch"], self._draw(batch["batch"], codes, accounting)))
        return sent

    def _check_tasks(self, batch: dict[str, Any]) -> list[PoolTask]:
        """Every task stands in the list at its number, no more come than the rules say, and none a second time."""
        leased = batch["tasks"]
        numbers = [task.get("number") for task in leased]
        if not 0 < len(leased) <= self._rules["batch_size"] or len(set(numbers)) < len(numbers):
            raise StudyError("the batch has more tasks than the pool's rules say, or one of them twice")
        root, size = bytes.fromhex(self._rules["tasks_root"]), self._rules["n_tasks"]
        for task in leased:
            proof = [bytes.fromhex(sibling) for sibling in task["proof"]]
            if not verify_inclusion(leaf_hash(task_leaf(task)), task["number"], size, proof, root):
                raise StudyError(f"task {task['id']!r} is not in the list that the definition names: it was changed")
        if again := self._memory.keep_labelled(self._study.id, batch["batch"], numbers):
            raise StudyError(f"task {again[0]} was leased to this device before, and no task is labelled twice")
        return [PoolTask(*(task[name] for name in ("number", "id", "text", "text_b", "alt"))) for task in leased]

    def _answer_codes(self, answers: dict[int, Any]) -> dict[int, int]:
        """Task → answer code of every report that will be drawn: all tasks where participation is protected."""
        codes = {task: code_of(self._form, answer) for task, answer in answers.items()}
        if self._study.protects_participation:
            return codes
        answered = {task: code for task, code in codes.items() if code != EMPTY}
        if not answered:
            raise InputError("answer at least one task of the batch, or give it back")
        return answered

    def _renew(self, batch: dict[str, Any], request: dict[str, str]) -> None:
        if datetime.fromisoformat(batch["expires"]) - datetime.now(UTC) < _MIN_TIME_LEFT:
            self._account.call("PUT", f"/studies/{self._study.id}/batches/{batch['batch']}", request)

    def _draw(self, batch: str, codes: dict[int, int], accounting: str) -> str:
        """Charge, draw and store, in this order; what is stored for this batch already is what leaves."""
        key = f"batch {self._study.id} {batch}"
        spend = Spend.through(self._channel, name=str(self._study.definition["title"]), count=len(codes))
        self._memory.remember(self._pending_fact, batch)
        if accounting == "one-by-one":
            ceiling = float(self._memory.fact(ceiling_fact(self._study.id)) or 0)
            return self._ledger.release_one_by_one(
                _ME, spend, pool=self._study.id, ceiling=ceiling, key=key, draw=lambda: self._parcel(codes, accounting)
            )
        return self._ledger.release(_ME, spend, key=key, draw=lambda: self._parcel(codes, accounting))

    def _parcel(self, codes: dict[int, int], accounting: str) -> str:
        drawn = draw(self._channel, np.array(list(codes.values())), self._entropy)
        withdrawal_key = secrets.token_hex(32)
        body = {
            "study_sha256": self._study.sha256,
            "level": self._level.name,
            "accounting": accounting,
            "consent_version": self._study.definition["consent"]["version"],
            "withdrawal_sha256": hashlib.sha256(bytes.fromhex(withdrawal_key)).hexdigest(),
            "channel": self._channel.sha256,
            "reports": [
                {"task": task, "report": int(report)} for task, report in zip(codes, drawn.tolist(), strict=True)
            ],
        }
        return json.dumps({"body": body, "withdrawal_key": withdrawal_key, "idempotency_key": secrets.token_hex(16)})

    def _send(self, batch: str, stored: str) -> tuple[dict[str, Any], dict[str, Any]]:
        parcel = json.loads(stored)
        path = f"/studies/{self._study.id}/batches/{batch}/submission"
        receipt = self._account.call("POST", path, parcel["body"], Idempotency_Key=parcel["idempotency_key"])
        signed = {name: value for name, value in receipt.items() if name != "signature"}
        check_signature(signed, receipt["signature"], self._public_key)
        self._memory.keep_receipt(f"{self._study.id} {batch}", self._study.definition["title"], json.dumps(receipt))
        self._memory.forget(self._pending_fact)
        return parcel["body"], receipt

    @property
    def _pending_fact(self) -> str:
        return f"pending {self._study.id}"

    def _pending(self) -> tuple[str, str] | None:
        """A batch that was drawn and has no receipt yet: the same reports are sent again."""
        batch = self._memory.fact(self._pending_fact)
        stored = None if batch is None else self._storage.kept(_ME, f"batch {self._study.id} {batch}")
        return None if batch is None or stored is None else (batch, stored)
