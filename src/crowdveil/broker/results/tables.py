"""Stored submissions as tables of reports, one table per domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.broker.studies.definition import Definition
from crowdveil.broker.studies.questions import Question
from crowdveil.broker.submissions.models import Submission
from crowdveil.broker.submissions.validation import NO_REPORT
from crowdveil.channel import Channel
from crowdveil.domain import Domain
from crowdveil.reports import Reports

_CHUNK = 5000


@dataclass(frozen=True, slots=True)
class Part:
    """The questions of one domain: their places in the definition and the channel of each level.

    `boxes` are those of "tick all that apply", whose options are their subsets.
    """

    number: int
    domain: Domain
    boxes: tuple[str, ...]
    places: tuple[int, ...]
    questions: tuple[str, ...]
    channels: tuple[Channel, ...]
    channel_of_level: tuple[int, ...]


def split_by_domain(opened: Definition) -> list[Part]:
    """Questions grouped by domain, since a table of reports has one."""
    grouped: dict[tuple[Domain, tuple[str, ...]], list[int]] = {}
    for index, question in enumerate(opened.document["questions"]):
        domain = Question.model_validate(question).domain.domain()
        grouped.setdefault((domain, tuple(question["domain"].get("boxes", ()))), []).append(index)
    return [_part(opened, number, *key, places) for number, (key, places) in enumerate(grouped.items())]


def _part(opened: Definition, number: int, domain: Domain, boxes: tuple[str, ...], places: list[int]) -> Part:
    hashes = [level.channels[places[0]] for level in opened.levels.values()]
    distinct = list(dict.fromkeys(hashes))
    return Part(
        number,
        domain,
        boxes,
        tuple(places),
        tuple(opened.questions[index] for index in places),
        tuple(opened.channels[sha256] for sha256 in distinct),
        tuple(distinct.index(sha256) for sha256 in hashes),
    )


@dataclass(frozen=True, slots=True)
class Stored:
    """Some submissions: a row of codes each, the level of each, and in linkable studies the pseudonym of each."""

    codes: NDArray[np.uint16]
    levels: NDArray[np.int16]
    pseudonyms: list[str]

    def __len__(self) -> int:
        return len(self.levels)


def chunks(study: str, opened: Definition, *, size: int = _CHUNK) -> Iterator[Stored]:
    """Submissions in the order of their random ids, which is no order at all, a few at a time.

    Pseudonyms are read in linkable studies only: nowhere else is there a use for them.
    """
    after = ""
    columns = ("id", "codes", "level", "pseudonym") if opened.document["linkable"] else ("id", "codes", "level")
    while True:
        rows = list(Submission.objects.filter(study=study, id__gt=after).order_by("id").values_list(*columns)[:size])
        if not rows:
            return
        yield _read_rows(rows, len(opened.questions))
        after = rows[-1][0]


def _read_rows(rows: list[tuple[Any, ...]], n_questions: int) -> Stored:
    codes = np.frombuffer(b"".join(bytes(row[1]) for row in rows), dtype="<u2").reshape(len(rows), n_questions)
    return Stored(codes, np.array([row[2] for row in rows], dtype=np.int16), [row[3] for row in rows if len(row) > 3])


def everything(study: str, opened: Definition) -> Stored:
    pieces = list(chunks(study, opened))
    if not pieces:
        return Stored(np.zeros((0, len(opened.questions)), np.uint16), np.zeros(0, np.int16), [])
    return Stored(
        np.concatenate([chunk.codes for chunk in pieces]),
        np.concatenate([chunk.levels for chunk in pieces]),
        [name for chunk in pieces for name in chunk.pseudonyms],
    )


def table(part: Part, stored: Stored, workers: NDArray[Any]) -> Reports:
    """The reports of one part; `workers` are the names the table shall use."""
    codes = stored.codes[:, part.places]
    worker, question = (axis.astype(np.int32) for axis in np.nonzero(codes != NO_REPORT))
    channel = np.array(part.channel_of_level, dtype=np.int16)[stored.levels[worker]]
    report = codes[worker, question].astype(np.int32)
    return Reports(worker, question, report, channel, workers, np.array(part.questions), part.channels, part.domain)
