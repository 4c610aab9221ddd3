"""The batches of a pool as one table of reports, read a few thousand rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from crowdveil.broker.pools.models import Batch, Task
from crowdveil.broker.problems import Refusal
from crowdveil.broker.results.tables import Part, parts_of
from crowdveil.broker.studies.definition import Opened
from crowdveil.files.reports import spell
from crowdveil.reports import Reports

_CHUNK = 2000


def batch_chunks(study: str) -> Iterator[list[tuple[str, str, int, bytes, bytes]]]:
    """(id, pseudonym, level, tasks, codes) in the order of random ids, which is no order at all."""
    after = ""
    columns = ("id", "pseudonym", "level", "tasks", "codes")
    while True:
        rows = list(Batch.objects.filter(study=study, id__gt=after).order_by("id").values_list(*columns)[:_CHUNK])
        if not rows:
            return
        yield [(key, name, level, bytes(tasks), bytes(codes)) for key, name, level, tasks, codes in rows]
        after = rows[-1][0]


def read_table(study: str, opened: Opened) -> tuple[Reports, dict[str, int]]:
    """All reports of a pool, and the batches they came in: id → number of its level."""
    part = parts_of(opened)[0]
    channel_of_level = np.array(part.channel_of_level, dtype=np.int16)
    workers: dict[str, int] = {}
    level_by_batch: dict[str, int] = {}
    columns: list[list[Any]] = [[], [], [], []]
    for chunk in batch_chunks(study):
        for key, name, level, tasks, codes in chunk:
            level_by_batch[key] = level
            task = np.frombuffer(tasks, dtype="<u4").astype(np.int32)
            worker = np.full(len(task), workers.setdefault(name, len(workers)), dtype=np.int32)
            channel = np.full(len(task), channel_of_level[level], dtype=np.int16)
            row = (worker, task, np.frombuffer(codes, dtype="<u2").astype(np.int32), channel)
            for column, values in zip(columns, row, strict=True):
                column.append(values)
    dtypes = (np.int32, np.int32, np.int32, np.int16)
    worker, task, report, channel = (
        np.concatenate(column) if column else np.zeros(0, dtype) for column, dtype in zip(columns, dtypes, strict=True)
    )
    names = np.array(list(workers), dtype=str)
    return Reports(worker, task, report, channel, names, task_names(study), part.channels, part.domain), level_by_batch


def task_names(study: str) -> Any:
    return np.array(list(Task.objects.filter(study=study).order_by("number").values_list("name", flat=True)), dtype=str)


def column_chunks(study: str, opened: Opened, part: Part) -> Iterator[dict[str, list[Any]]]:
    """Columns of texts for an export; workers get new names in every export, unless the pool is linkable."""
    spelled = [[spell(output) for output in channel.outputs] for channel in part.channels]
    names: dict[str, str] = {}
    tasks_by_number = task_names(study)
    for chunk in batch_chunks(study):
        columns: dict[str, list[Any]] = {"worker": [], "question": [], "report": [], "channel": []}
        for _, pseudonym, level, tasks, codes in chunk:
            through = part.channel_of_level[level]
            name = pseudonym if opened.document["linkable"] else names.setdefault(pseudonym, f"w{len(names)}")
            numbers = np.frombuffer(tasks, dtype="<u4")
            columns["worker"] += [name] * len(numbers)
            columns["question"] += tasks_by_number[numbers].tolist()
            columns["report"] += [spelled[through][code] for code in np.frombuffer(codes, dtype="<u2")]
            columns["channel"] += [through] * len(numbers)
        yield columns


def count_workers(study: str) -> int:
    return Batch.objects.filter(study=study).values("pseudonym").distinct().count()


def check_enough_workers(study: str, minimum: int) -> None:
    if count_workers(study) < minimum:
        raise Refusal("below-minimum", f"reports are exported from {minimum} workers on", minimum_n=minimum)
