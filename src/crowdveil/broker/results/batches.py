"""Estimates in batches: nothing below the minimum, and while a study runs no two looks that differ by fewer people.

Only closing may show the last few who came, since the requester then gets every report, in no order, in any case.
"""

from __future__ import annotations

import json
import threading
from typing import Any

from crowdveil.broker.db.transactions import write_transaction
from crowdveil.broker.problems import Refusal
from crowdveil.broker.results.estimates import estimate
from crowdveil.broker.results.information import MAX_SECONDS
from crowdveil.broker.results.latest_batch import find_latest_batch, minimum_submissions, newest
from crowdveil.broker.results.models import Batch
from crowdveil.broker.results.quality import scores_in, still_there
from crowdveil.broker.results.tables import everything
from crowdveil.broker.studies.definition import read_definition
from crowdveil.broker.studies.models import Study
from crowdveil.broker.submissions.models import Submission
from crowdveil.broker.webhooks.notices import announce

_computing = threading.Lock()
# Reports that are estimated while somebody waits for the page.
_AT_ONCE = 100_000
# What a page waits for the planner, where reports cannot tell; batches made in the background give it longer.
_PAGE_SECONDS = 0.5


def latest(study: Study) -> dict[str, Any]:
    """The newest estimates that may be shown."""
    batch = newest(study)
    shown = json.loads(batch.estimates) | {"batch": batch.number, "day": batch.day.isoformat()}
    shown.pop("workers", None)
    revealed = json.loads(study.gold) if study.gold and study.state == "published" else {}
    return shown | {"gold": revealed.get("truths"), "gold_salt": revealed.get("salt")}


def read_published(study: Study) -> dict[str, Any]:
    if study.state != "published":
        raise Refusal("wrong-state", "the results of this study are not published")
    return latest(study)


def is_due(study: Study) -> bool:
    """Whether as many new submissions have come as the study asks for at the least."""
    n, minimum, last = _count(study), minimum_submissions(study), find_latest_batch(study.id)
    # From ten thousand on a batch also needs a tenth more, or a large study would compute all day.
    step = max(minimum, last.n // 10) if last else minimum
    return n >= (last.n if last else 0) + step


def refresh(study: Study) -> None:
    """Make a batch now if one is due and the study is small; large ones are left to the background jobs."""
    if not study.definition or study.state not in ("pilot", "open"):
        return
    if _count(study) * len(read_definition(study.definition, study.sha256).questions) > _AT_ONCE or not is_due(study):
        return
    # Whoever looks while another batch is made sees the last one: waiting, they would keep submissions out.
    if _computing.acquire(blocking=False):
        try:
            _make(study, final=False, planning_seconds=_PAGE_SECONDS)
        finally:
            _computing.release()


def make_batch(study: Study, *, final: bool = False) -> None:
    """Estimate anew and keep the result, if enough people came since the last time.

    The final batch takes in everybody, however few came since: the export of a closed study has them all anyway. There
    is one: a withdrawal after closing must not show, by a second one, what was withdrawn.
    """
    with _computing:
        _make(study, final=final)


def _make(study: Study, *, final: bool, planning_seconds: float = MAX_SECONDS) -> None:
    last, n, minimum = find_latest_batch(study.id), _count(study), minimum_submissions(study)
    if n < minimum or (last and last.final):
        return
    # The same number may be other people: some withdrew, and as many came.
    if last and not final and abs(n - last.n) < minimum:
        return
    document = _document(study, planning_seconds)
    with write_transaction():
        if "workers" in document:
            document["workers"] = still_there(study.id, document["workers"])
        number = last.number + 1 if last else 1
        batch = Batch(study=study.id, number=number, n=document["n"], final=final, estimates=json.dumps(document))
        # Another process may have made the same batch meanwhile; as an error it would stand in PostgreSQL's log.
        Batch.objects.bulk_create([batch], ignore_conflicts=True)
        if Batch.objects.filter(id=batch.id).exists():
            announce(study, "results.ready")


def _document(study: Study, planning_seconds: float) -> dict[str, Any]:
    """Estimates, and for linkable studies how well workers do, from one look at the reports."""
    opened = read_definition(study.definition, study.sha256)
    stored = everything(study.id, opened)
    document = estimate(study.id, opened, stored, planning_seconds=planning_seconds)
    return document | ({"workers": scores_in(study, opened, stored)} if opened.document["linkable"] else {})


def keep_as_final(studies: list[str]) -> None:
    """What was shown last of these closed studies stays what is shown, where no batch says that it is the last."""
    for study in studies:
        if (
            not Batch.objects.filter(study=study, final=True).exists()
            and (last := find_latest_batch(study)) is not None
        ):
            Batch.objects.filter(id=last.id).update(final=True)


def _count(study: Study) -> int:
    return Submission.objects.filter(study=study.id).count()
