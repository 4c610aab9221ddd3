"""How well the workers of a linkable study do: skill from the reports, and gold scored through the channel."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from crowdveil.broker.db.transactions import study_lock
from crowdveil.broker.problems import Refusal
from crowdveil.broker.results.latest_batch import newest
from crowdveil.broker.results.models import Batch
from crowdveil.broker.results.tables import Part, Stored, split_by_domain
from crowdveil.broker.studies.definition import Definition, read_definition
from crowdveil.broker.studies.gold import read_truths
from crowdveil.broker.studies.models import Study
from crowdveil.broker.submissions.models import Submission
from crowdveil.broker.submissions.validation import NO_REPORT
from crowdveil.errors import ChannelError

_MEANING = (
    "share of gold questions answered right, estimated without bias from randomised reports; "
    "it may fall outside 0 to 1 because of the noise, and low and high bound it at 95 %"
)


def scores_in(study: Study, opened: Definition, stored: Stored) -> list[dict[str, Any]]:
    """The scores that go into a batch: none where workers were promised not to be told apart."""
    return _scores(opened, stored, read_truths(study.gold)) if opened.document["linkable"] else []


def quality(study: Study) -> dict[str, Any]:
    """Linkable studies only: elsewhere a worker has no name under which a quality could be kept.

    From the same batch as the estimates: a list that grew with every submission would tell who has just come.
    """
    if not study.definition:
        raise Refusal("wrong-state", "a draft has no workers yet")
    if not read_definition(study.definition, study.sha256).document["linkable"]:
        raise Refusal("forbidden", "workers of this study cannot be told apart, as they were promised")
    return {"meaning": _MEANING, "workers": json.loads(newest(study).estimates).get("workers", [])}


def forget(study: str, name: str) -> None:
    """Inside the transaction that withdraws reports: scores are those on gold questions, spelled otherwise."""
    for batch in Batch.objects.filter(study=study, estimates__contains=name):
        document = json.loads(batch.estimates)
        document["workers"] = [each for each in document["workers"] if each["worker"] != name]
        Batch.objects.filter(id=batch.id).update(estimates=json.dumps(document))


def still_there(study: str, scores: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without those who withdrew while the batch was computed; nobody else can until this transaction ends."""
    study_lock(study)
    names = set(Submission.objects.filter(study=study).values_list("pseudonym", flat=True))
    return [each for each in scores if each["worker"] in names]


def _scores(opened: Definition, stored: Stored, truths: dict[str, str]) -> list[dict[str, Any]]:
    right, variance, count = np.zeros(len(stored)), np.zeros(len(stored)), np.zeros(len(stored))
    for part in split_by_domain(opened):
        for column, question in enumerate(part.questions):
            if question in truths:
                truth = part.domain.code(truths[question])
                _add_gold(part, part.places[column], truth, stored, (right, variance, count))
    return [
        {
            "worker": name,
            "n_gold": int(n),
            "score": _ratio(score, n),
            "low": _ratio(score - 1.96 * math.sqrt(spread), n),
            "high": _ratio(score + 1.96 * math.sqrt(spread), n),
        }
        for name, score, spread, n in zip(stored.pseudonyms, right, variance, count, strict=True)
    ]


def _add_gold(part: Part, place: int, truth: int, stored: Stored, sums: tuple[Any, Any, Any]) -> None:
    """Add each worker's unbiased vote for the truth: 1 on average if the answer was right, 0 if not."""
    right, variance, count = sums
    codes = stored.codes[:, place]
    for level, index in enumerate(part.channel_of_level):
        rows = np.flatnonzero((stored.levels == level) & (codes != NO_REPORT))
        channel = part.channels[index]
        try:
            votes = channel.votes[:, truth]
        except ChannelError:
            # Studies that opened before this was refused: nobody is scored by such a report.
            continue
        right[rows] += votes[codes[rows]]
        variance[rows] += float((channel.table @ votes**2 - np.eye(len(channel.inputs))[:, truth]).max())
        count[rows] += 1


def _ratio(total: float, n: float) -> float | None:
    return round(float(total / n), 4) if n else None
