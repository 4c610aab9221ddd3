"""Estimates in batches: nothing below the minimum, and never a look that differs from the last by one person."""

from __future__ import annotations

import json
import threading
from typing import Any

from django.db import IntegrityError

from crowdveil.broker.hooks.notices import announce
from crowdveil.broker.intake.models import Submission
from crowdveil.broker.refusal import Refusal
from crowdveil.broker.results.estimates import estimate
from crowdveil.broker.results.models import Batch
from crowdveil.broker.studies.definition import read_definition
from crowdveil.broker.studies.models import Study
from crowdveil.broker.writing import write

_computing = threading.Lock()
# Reports that are estimated while somebody waits for the page.
_AT_ONCE = 100_000


def latest(study: Study) -> dict[str, Any]:
    """The newest estimates that may be shown."""
    batch = Batch.objects.filter(study=study.id).order_by("-number").first()
    if batch is None:
        minimum = _minimum(study) if study.definition else 0
        raise Refusal(
            "below-minimum", f"estimates are shown from {minimum} submissions on; wait for more", minimum_n=minimum
        )
    shown = json.loads(batch.estimates) | {"batch": batch.number, "day": batch.day.isoformat()}
    revealed = json.loads(study.gold) if study.gold and study.state == "published" else {}
    return shown | {"gold": revealed.get("truths"), "gold_salt": revealed.get("salt")}


def published(study: Study) -> dict[str, Any]:
    if study.state != "published":
        raise Refusal("wrong-state", "the results of this study are not published")
    return latest(study)


def is_due(study: Study) -> bool:
    """Whether as many new submissions have come as the study asks for at the least."""
    n, minimum = Submission.objects.filter(study=study.id).count(), _minimum(study)
    last = Batch.objects.filter(study=study.id).order_by("-number").first()
    # From ten thousand on a batch also needs a tenth more, or a large study would compute all day.
    step = max(minimum, last.n // 10) if last else minimum
    return n >= (last.n if last else 0) + step


def refresh(study: Study) -> None:
    """Make a batch now if one is due and the study is small; large ones are left to the caretaker."""
    if not study.definition or study.state not in ("pilot", "open"):
        return
    n = Submission.objects.filter(study=study.id).count()
    if n * len(read_definition(study.definition, study.sha256).questions) <= _AT_ONCE and is_due(study):
        make_batch(study)


def make_batch(study: Study, *, final: bool = False) -> None:
    """Estimate anew and keep the result, if enough people came since the last time.

    The final batch takes in everybody, however few came since: the export of a closed study has them all anyway.
    """
    with _computing:
        last = Batch.objects.filter(study=study.id).order_by("-number").first()
        n, minimum = Submission.objects.filter(study=study.id).count(), _minimum(study)
        if n < minimum or abs(n - (last.n if last else 0)) < (1 if final else minimum):
            return
        document = estimate(study.id, read_definition(study.definition, study.sha256))
        try:
            with write():
                number = last.number + 1 if last else 1
                Batch.objects.create(study=study.id, number=number, n=document["n"], estimates=json.dumps(document))
                announce(study, "results.ready")
        except IntegrityError:
            # Another process made the same batch meanwhile.
            return


def _minimum(study: Study) -> int:
    return int(read_definition(study.definition, study.sha256).document["minimum_n"])
