"""Updates of a pool's labels: estimated outside the request threads, stored as a table, read page by page.

Two updates differ by the batches of at least `minimum_n` workers, so that none shows what one of them reported. An
update goes on from the one before; the last one starts anew, so that it is what `crowdveil infer` computes.
"""

from __future__ import annotations

import json
import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np
from django.db.models import Q

from crowdveil.broker.db.transactions import alone_with_labels_of, write_transaction
from crowdveil.broker.pools.models import Batch, Label, Pool, Task, Update
from crowdveil.broker.pools.tables import count_workers, read_table
from crowdveil.broker.problems import Refusal
from crowdveil.broker.results.estimates import privacy_statement
from crowdveil.broker.studies.definition import Definition, read_definition
from crowdveil.broker.studies.gold import read_truths
from crowdveil.broker.studies.models import Study
from crowdveil.broker.webhooks.notices import announce
from crowdveil.estimate import Estimate
from crowdveil.inference import method
from crowdveil.reports import Reports

MAX_WARM_STARTS = 8
_MIN_NEW_SHARE = 50
"""An update takes in at least one new batch in so many: a large pool would be estimated all day otherwise."""
_CHUNK = 1000

_estimating = threading.Lock()
_warm_starts: OrderedDict[str, Estimate] = OrderedDict()


def update_due_pools() -> None:
    """A background job: update the labels of every open pool to which enough workers have sent batches."""
    for study in Study.objects.filter(id__in=Pool.objects.values("study"), state__in=("pilot", "open")):
        update_labels(study)


def update_labels(study: Study, *, final: bool = False) -> None:
    """Estimate all labels anew and store them, if enough workers came since the last time.

    Of several processes one updates a pool; the last update waits for its turn.
    """
    with _estimating, alone_with_labels_of(study.id, wait=final) as alone:
        if alone and _update(study, final=final):
            announce(study, "results.ready")


def _update(study: Study, *, final: bool) -> bool:
    opened = read_definition(study.definition, study.sha256)
    _discard_unfinished(study.id)
    last = Update.objects.filter(study=study.id).order_by("-number").first()
    if (last is not None and last.final) or not (_is_enough(study, opened) if final else _is_due(study, opened)):
        return False
    reports, level_by_batch = read_table(study.id, opened)
    start = None if final else _warm_starts.get(study.id)
    estimate = method("auto").fit(reports, start)
    _remember(study.id, None if final else estimate)
    number = last.number + 1 if last is not None else 1
    privacy = _privacy_statement(opened, level_by_batch)
    _store(study, opened, number, estimate, reports, privacy, final=final)
    _count_batches(study.id, list(level_by_batch), number)
    _stop_tasks(study.id, opened, number)
    return True


def _discard_unfinished(study: str) -> None:
    """A crash may have left an update of which some labels are missing; it was never shown."""
    for unfinished in Update.objects.filter(study=study, complete=False):
        with write_transaction():
            Label.objects.filter(study=study, number=unfinished.number).delete()
            unfinished.delete()


def _is_enough(study: Study, opened: Definition) -> bool:
    return count_workers(study.id) >= int(opened.document["minimum_n"])


def _is_due(study: Study, opened: Definition) -> bool:
    batches = Batch.objects.filter(study=study.id)
    new = batches.filter(counted=0)
    n_new_workers = new.values("pseudonym").distinct().count()
    return n_new_workers >= int(opened.document["minimum_n"]) and new.count() * _MIN_NEW_SHARE >= batches.count()


def _remember(study: str, estimate: Estimate | None) -> None:
    _warm_starts.pop(study, None)
    if estimate is not None:
        _warm_starts[study] = estimate
        while len(_warm_starts) > MAX_WARM_STARTS:
            _warm_starts.popitem(last=False)


def _store(
    study: Study, opened: Definition, number: int, estimate: Estimate, reports: Reports, privacy: str, *, final: bool
) -> None:
    """Labels in short transactions, so that no submission waits; the update is shown when the last one is there."""
    labels = list(_labels(study.id, number, estimate, reports))
    update = Update(
        study=study.id,
        number=number,
        n_workers=len(reports.workers),
        n_reports=len(reports),
        final=final,
        summary=json.dumps(_summary(study, estimate, labels) | {"privacy": privacy}),
    )
    update.save(force_insert=True)
    for start in range(0, len(labels), _CHUNK):
        with write_transaction():
            Label.objects.bulk_create(labels[start : start + _CHUNK])
    with write_transaction():
        Update.objects.filter(id=update.id).update(complete=True)
    for earlier in Update.objects.filter(study=study.id, number__lt=number):
        with write_transaction():
            Label.objects.filter(study=study.id, number=earlier.number).delete()


def _labels(study: str, number: int, estimate: Estimate, reports: Reports) -> Iterator[Label]:
    counts = np.bincount(reports.question, minlength=len(reports.questions))
    values = estimate.values()
    for task, name in enumerate(reports.questions):
        value = values[task]
        yield Label(
            study=study,
            number=number,
            task=task,
            name=str(name),
            value=None if value is None else value if isinstance(value, str) else f"{value:.10g}",
            probability=_finite(estimate.confidence[task]) if value is not None else None,
            low=_finite(estimate.low[task]),
            high=_finite(estimate.high[task]),
            n_reports=int(counts[task]),
        )


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(float(value)) else None


def _summary(study: Study, estimate: Estimate, labels: list[Label]) -> dict[str, Any]:
    known = read_truths(study.gold)
    scored = [label for label in labels if label.value is not None and label.name in known]
    right = sum(label.value == known[label.name] for label in scored)
    return {
        "method": estimate.method,
        "warnings": list(estimate.warnings),
        "converged": estimate.converged,
        "iterations": estimate.iterations,
        "n_gold": len(scored),
        "n_gold_right": right,
    }


def _privacy_statement(opened: Definition, level_by_batch: dict[str, int]) -> str:
    """What protected the batches that were read: of the levels that were used, not of those that were offered."""
    counts = Counter(level_by_batch.values())
    levels = [level for level in opened.levels.values() if counts[level.number]]
    unprotected = sum(counts[level.number] for level in levels if not level.protected)
    return privacy_statement(opened, levels, len(level_by_batch), unprotected, unit="batch")


def _count_batches(study: str, keys: list[str], number: int) -> None:
    for start in range(0, len(keys), _CHUNK):
        with write_transaction():
            Batch.objects.filter(study=study, counted=0, id__in=keys[start : start + _CHUNK]).update(counted=number)


def _stop_tasks(study: str, opened: Definition, number: int) -> None:
    """Tasks whose label is certain enough leave the pool; estimates are post-processing of reports and cost no ε."""
    if (rule := opened.document["pool"]["stop"]) is None:
        return
    certain = Label.objects.filter(
        study=study, number=number, probability__gte=float(rule["probability"]), n_reports__gte=rule["min_reports"]
    )
    with write_transaction():
        Task.objects.filter(study=study, open=True, number__in=certain.values("task")).update(open=False)


def newest_update(study: Study) -> Update:
    """The update that is shown; nothing before enough workers came."""
    found = Update.objects.filter(study=study.id, complete=True).order_by("-number").first()
    if found is None:
        minimum = int(read_definition(study.definition, study.sha256).document["minimum_n"]) if study.definition else 0
        raise Refusal("below-minimum", f"labels are shown from {minimum} workers on; wait for more", minimum_n=minimum)
    return found


def read_labels(study: Study, *, order: str, after: int, limit: int, below: float | None = None) -> dict[str, Any]:
    """One page of the newest labels, by task or the least certain first, with the progress of the pool."""
    update = newest_update(study)
    labels = Label.objects.filter(study=study.id, number=update.number)
    chosen = labels if below is None else labels.filter(Q(probability__lt=below) | Q(probability__isnull=True))
    ordered = chosen.order_by("task") if order == "task" else chosen.order_by("probability", "task")
    page = list(ordered[after : after + limit + 1])
    rule = read_definition(study.definition, study.sha256).document["pool"]["stop"]
    certain = float(rule["probability"]) if rule else 0.95
    return {
        "update": update.number,
        "day": update.day.isoformat(),
        "final": update.final,
        "n_workers": update.n_workers,
        "n_reports": update.n_reports,
        "n_tasks": labels.count(),
        "n_certain": labels.filter(probability__gte=certain).count(),
        "certain_at": certain,
        **json.loads(update.summary),
        "items": [label_fields(label) for label in page[:limit]],
        "next": after + limit if len(page) > limit else None,
    }


def published_labels(study: Study, *, after: int, limit: int) -> dict[str, Any]:
    """A page of a published pool with the known truths of its tasks, and the salt of the commitment to all of them."""
    if study.state != "published":
        raise Refusal("wrong-state", "the labels of this pool are not published")
    page = read_labels(study, order="task", after=after, limit=limit)
    known = read_truths(study.gold)
    names = [item["task"] for item in page["items"]]
    salt = json.loads(study.gold)["salt"] if study.gold else None
    return page | {"gold": {name: known[name] for name in names if name in known}, "gold_salt": salt}


def label_fields(label: Label) -> dict[str, Any]:
    return {
        "task": label.name,
        "label": label.value,
        "probability": label.probability,
        "low": label.low,
        "high": label.high,
        "n_reports": label.n_reports,
    }


def iterate_labels(study: Study) -> Iterator[list[dict[str, Any]]]:
    """All labels of the newest update, in the order of the list, a few thousand at a time."""
    number, after = newest_update(study).number, -1
    while True:
        found = Label.objects.filter(study=study.id, number=number, task__gt=after).order_by("task")[:_CHUNK]
        chunk = list(found)
        if not chunk:
            return
        yield [label_fields(label) for label in chunk]
        after = chunk[-1].task
