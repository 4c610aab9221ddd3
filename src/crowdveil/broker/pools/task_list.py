"""The task list of a pool: uploaded in parts, checked whole, and only then the list of the draft.

Parts may come again, so an interrupted upload goes on where it stopped; a list that is not committed is never used.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from django.db import connection

from crowdveil.broker.audit_log.chain import record
from crowdveil.broker.db.transactions import execute_rowcount, fetch_all, write_transaction
from crowdveil.broker.ids import random_id
from crowdveil.broker.pools.models import Assignment, Pool, Task, WorkerCode
from crowdveil.broker.pools.rules import MAX_TASKS
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.draft import Draft
from crowdveil.broker.studies.models import Study
from crowdveil.canonical_json import canonical
from crowdveil.errors import InputError
from crowdveil.merkle import MerkleTree, leaf_hash

MAX_ASSIGNMENTS = 2_000_000
MAX_SHUFFLE = 1_000_003
"""A prime; 1009 times as much is still a 32-bit integer."""
_CHUNK = 2000


class NewTask(Protocol):
    """A task as it comes in."""

    id: str
    text: str
    text_b: str | None
    alt: str | None
    gold: str | None


class NewAssignment(Protocol):
    """A pair of a listed assignment as it comes in."""

    worker: str
    task: str


def is_pool(study: str) -> bool:
    return Pool.objects.filter(study=study).exists()


def refuse_pool_results(study: str) -> None:
    if is_pool(study):
        raise Refusal("wrong-state", "this study is a pool of tasks; it has labels, not results")


def task_content(task: NewTask) -> str:
    """What the Merkle leaf commits to. Media will stand here by their SHA-256."""
    fields = {"id": task.id, "text": task.text, "text_b": task.text_b, "alt": task.alt, "image": None, "audio": None}
    return canonical(fields).decode()


def check_same_kind(before: Draft, after: Draft) -> None:
    if before.kind != after.kind:
        raise Refusal("invalid", "a draft stays a survey or a pool of tasks; start another one")


def create_pool(study: str) -> None:
    Pool.objects.create(study=study)


def discard_pool(study: str) -> None:
    for model in (Task, Assignment, WorkerCode):
        model._default_manager.filter(study=study).delete()
    Pool.objects.filter(study=study).delete()


def start_upload(study: Study) -> str:
    """A new upload; what another one left unfinished is removed."""
    pool = _pool_of_draft(study)
    with write_transaction():
        for model in (Task, Assignment):
            model._default_manager.filter(study=study.id).exclude(upload=pool.upload or "-").delete()
    return random_id()


def put_part(
    study: Study, draft: Draft, upload: str, first: int, tasks: Sequence[NewTask], pairs: Sequence[NewAssignment]
) -> None:
    """Store tasks from number `first` on, in place of what stood there, and some pairs of a listed assignment."""
    pool = _pool_of_draft(study)
    if upload == pool.upload:
        raise Refusal("wrong-state", "this upload is committed; start a new one to replace the list")
    if first + len(tasks) > MAX_TASKS:
        raise Refusal("invalid", f"a pool has at most {MAX_TASKS:,} tasks; nothing of this part was stored")
    domain = draft.questions[0].domain.domain()
    for row, task in enumerate(tasks, first + 1):
        if task.gold is not None:
            try:
                domain.code(task.gold)
            except InputError as error:
                raise Refusal("invalid", f"task {row}: the known truth: {error}", row=row) from None
    new = [
        Task(study=study.id, upload=upload, number=number, name=task.id, content=task_content(task), gold=task.gold)
        for number, task in enumerate(tasks, first)
    ]
    with write_transaction():
        Task.objects.filter(upload=upload, number__gte=first, number__lt=first + len(tasks)).delete()
        Task.objects.bulk_create(new, batch_size=_CHUNK)
        Assignment.objects.bulk_create(
            [Assignment(study=study.id, upload=upload, code=pair.worker, name=pair.task) for pair in pairs],
            batch_size=_CHUNK,
            ignore_conflicts=True,
        )


def commit_upload(study: Study, draft: Draft, upload: str, n_tasks: int) -> Pool:
    """Check the uploaded list whole and make it the list of the draft, or refuse and leave the draft as it was."""
    pool = _pool_of_draft(study)
    if upload == pool.upload:
        return pool
    with write_transaction():
        _check_list(draft, upload, n_tasks)
        numbered = list(Task.objects.filter(upload=upload).order_by("number").values_list("id", "content"))
        tree = MerkleTree([leaf_hash(content.encode()) for _, content in numbered])
        columns = [
            (b"".join(tree.proof(number)), secrets.randbelow(MAX_SHUFFLE), key)
            for number, (key, _) in enumerate(numbered)
        ]
        with connection.cursor() as cursor:
            cursor.executemany("UPDATE pools_task SET proof = %s, shuffle = %s WHERE id = %s", columns)
        for model in (Task, Assignment):
            model._default_manager.filter(study=study.id).exclude(upload=upload).delete()
        _replace_worker_codes(study.id, upload)
        Pool.objects.filter(study=study.id).update(upload=upload, n_tasks=n_tasks, root=tree.root.hex())
        record(study.owner_id, "study.tasks", study.id)
    return Pool.objects.get(study=study.id)


def _check_list(draft: Draft, upload: str, n_tasks: int) -> None:
    [(n_stored, last)] = fetch_all(
        "SELECT COUNT(*), COALESCE(MAX(number), -1) FROM pools_task WHERE upload = %s", upload
    )
    if (n_stored, last) != (n_tasks, n_tasks - 1):
        raise Refusal("invalid", f"the list must have {n_tasks} tasks without a gap; {n_stored} have come")
    twice = fetch_all(
        "SELECT name, MAX(number) FROM pools_task WHERE upload = %s GROUP BY name HAVING COUNT(*) > 1 "
        "ORDER BY MAX(number) LIMIT 1",
        upload,
    )
    if twice:
        raise Refusal(
            "invalid", f"task {twice[0][1] + 1} has the id {twice[0][0]!r}, which another task has", row=twice[0][1] + 1
        )
    listed = draft.pool is not None and draft.pool.assignment == "listed"
    execute_rowcount(
        "UPDATE pools_assignment SET task = (SELECT number FROM pools_task t WHERE t.upload = pools_assignment.upload "
        "AND t.name = pools_assignment.name) WHERE upload = %s",
        upload,
    )
    [(n_pairs,)] = fetch_all("SELECT COUNT(*) FROM pools_assignment WHERE upload = %s", upload)
    unknown = fetch_all("SELECT code, name FROM pools_assignment WHERE upload = %s AND task IS NULL LIMIT 1", upload)
    if unknown:
        raise Refusal(
            "invalid", f"worker {unknown[0][0]!r} is assigned the task {unknown[0][1]!r}, which the list has not"
        )
    if listed != (n_pairs > 0):
        raise Refusal("invalid", "a listed assignment needs pairs of worker and task, and no other assignment has them")
    if n_pairs > MAX_ASSIGNMENTS:
        raise Refusal("invalid", f"an assignment lists at most {MAX_ASSIGNMENTS:,} pairs; got {n_pairs:,}")


def _replace_worker_codes(study: str, upload: str) -> None:
    WorkerCode.objects.filter(study=study).delete()
    codes = Assignment.objects.filter(upload=upload).values_list("code", flat=True).distinct()
    WorkerCode.objects.bulk_create([WorkerCode(study=study, code=code) for code in codes], batch_size=_CHUNK)


def list_document(study: str) -> dict[str, Any]:
    """What the signed definition says of the task list."""
    pool = Pool.objects.get(study=study)
    if not pool.n_tasks:
        raise Refusal("wrong-state", "a pool needs its task list before it opens; upload one")
    return {"n_tasks": pool.n_tasks, "tasks_root": pool.root}


def known_truths(study: str) -> dict[str, str]:
    known = Task.objects.filter(study=study, gold__isnull=False).order_by("number").values_list("name", "gold")
    return {name: str(gold) for name, gold in known}


def read_tasks(study: str, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Tasks with their proofs, in the order of the list."""
    found = Task.objects.filter(study=study, number__in=list(numbers)).order_by("number")
    return [
        {"number": number, **json.loads(content), "proof": list(_siblings(bytes(proof)))}
        for number, content, proof in found.values_list("number", "content", "proof")
    ]


def _siblings(proof: bytes) -> Iterator[str]:
    for start in range(0, len(proof), 32):
        yield proof[start : start + 32].hex()


def _pool_of_draft(study: Study) -> Pool:
    pool = Pool.objects.filter(study=study.id).first()
    if pool is None:
        raise Refusal("wrong-state", "this study is a survey; only a study of kind tasks has a task list")
    if study.state != "draft":
        raise Refusal("wrong-state", f"the task list is frozen with the study; it is {study.state}")
    return pool
