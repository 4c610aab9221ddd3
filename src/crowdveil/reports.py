"""Reports: all that ever leaves a device, and all that inference may read."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import (
    Answers,
    check_codes,
    check_columns,
    codes_of,
    constructor_arguments,
    frozen_column,
    frozen_ids,
)
from crowdveil.channel import Channel, identity
from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.domain import Domain
from crowdveil.errors import ChannelError, InputError
from crowdveil.guarantee import round_up

AnyChannel: TypeAlias = Channel | NoiseRecord


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reports:
    """Columns worker, question, report code and channel index (14 bytes a row), dictionaries and the channels.

    A report code is a place in its channel's outputs. Workers with different ε and different mechanisms mix
    freely: each row names its channel. The order of rows never matters. Research mechanisms that release real
    numbers use the `number` column instead; their report code is -1 and their channel a NoiseRecord.
    """

    worker: NDArray[np.int32]
    question: NDArray[np.int32]
    report: NDArray[np.int32]
    channel: NDArray[np.int16]
    workers: NDArray[Any]
    questions: NDArray[Any]
    channels: tuple[AnyChannel, ...]
    domain: Domain
    number: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        for name in ("worker", "question", "report"):
            object.__setattr__(self, name, frozen_column(getattr(self, name), np.int32))
        object.__setattr__(self, "channel", frozen_column(self.channel, np.int16))
        for name in ("workers", "questions"):
            object.__setattr__(self, name, frozen_ids(getattr(self, name)))
        object.__setattr__(self, "channels", tuple(self.channels))
        if self.number is not None:
            object.__setattr__(self, "number", frozen_column(self.number, np.float64))
        self._check()

    def _check(self) -> None:
        columns = ("worker", "question", "report", "channel")
        check_columns(self, columns if self.number is None else (*columns, "number"))
        check_codes("worker", self.worker, 0, len(self.workers))
        check_codes("question", self.question, 0, len(self.questions))
        check_codes("channel", self.channel, 0, len(self.channels))
        for index, channel in enumerate(self.channels):
            if isinstance(channel, Channel):
                self._check_channel(index, channel)
            elif self.number is None:
                raise InputError("a research mechanism's reports are numbers; got none", field="number")
        if self.number is not None and not np.isfinite(self.number).all():
            row = int(np.flatnonzero(~np.isfinite(self.number))[0]) + 1
            raise InputError("a report must be a finite number", row=row, field="report")

    def _check_channel(self, index: int, channel: Channel) -> None:
        if channel.inputs[: channel.n_levels] != self.domain.symbols:
            raise ChannelError(
                f"channel {index} randomises other answers than this table's",
                fix="keep one domain per table",
            )
        if len(self.channels) == 1:
            check_codes("report", self.report, 0, len(channel.outputs))
            return
        rows = np.flatnonzero(self.channel == index)
        codes = self.report[rows]
        if len(codes) and (codes.min() < 0 or codes.max() >= len(channel.outputs)):
            row = rows[int(np.argmax((codes < 0) | (codes >= len(channel.outputs))))]
            raise InputError(
                f"report codes of channel {index} must be from 0 to {len(channel.outputs) - 1}",
                row=int(row) + 1,
                field="report",
            )

    @classmethod
    def unprotected(cls, answers: Answers) -> Reports:
        """Answers that were given without any privacy: the identity channel, ε = ∞; ∅ rows are left out."""
        given = answers.answer >= 0
        return cls(
            answers.worker[given],
            answers.question[given],
            answers.answer[given],
            np.zeros(int(given.sum()), dtype=np.int16),
            answers.workers,
            answers.questions,
            (identity(answers.domain),),
            answers.domain,
        )

    @classmethod
    def from_rows(
        cls, rows: Iterable[tuple[Hashable, Hashable, int, int]], channels: Iterable[AnyChannel], domain: Domain
    ) -> Reports:
        """From (worker, question, report code, channel index) rows."""
        listed = list(rows)
        worker, workers = codes_of([row[0] for row in listed])
        question, questions = codes_of([row[1] for row in listed])
        report = np.array([row[2] for row in listed], dtype=np.int32)
        channel = np.array([row[3] for row in listed], dtype=np.int16)
        return cls(worker, question, report, channel, workers, questions, tuple(channels), domain)

    @classmethod
    def concat(cls, tables: Iterable[Reports]) -> Reports:
        """Tables about one domain under each other; equal ids are the same worker or question, equal channels one.

        >>> from crowdveil import Answers, Choices, RandomizedResponse, entropy_from
        >>> answers = Answers.from_rows([("ada", "q1", "yes"), ("bob", "q1", "no")], Choices(("no", "yes")))
        >>> protected = RandomizedResponse(epsilon=1.0).randomize(answers, entropy_from(1))
        >>> Reports.concat([protected, Reports.unprotected(answers)])
        Reports: 4 of 2 workers on 1 questions, Choices(['no', 'yes']), ε ≤ 1 per value; not protected
        """
        parts = list(tables)
        if not parts:
            raise InputError("there are no tables to put together", fix="give at least one")
        for index, part in enumerate(parts):
            if part.domain != parts[0].domain:
                problem = f"table {index + 1} is about {part.domain!r}, table 1 about {parts[0].domain!r}"
                raise InputError(problem, fix="keep one domain per table")
        worker, workers = _merge_ids([part.workers for part in parts], [part.worker for part in parts])
        question, questions = _merge_ids([part.questions for part in parts], [part.question for part in parts])
        code_by_channel: dict[str, int] = {}
        channels: list[AnyChannel] = []
        channel = []
        for part in parts:
            for each in part.channels:
                if code_by_channel.setdefault(each.sha256, len(channels)) == len(channels):
                    channels.append(each)
            codes = np.array([code_by_channel[each.sha256] for each in part.channels], dtype=np.int16)
            channel.append(codes[part.channel])
        numbers = [np.zeros(len(part)) if part.number is None else part.number for part in parts]
        return cls(
            worker,
            question,
            np.concatenate([part.report for part in parts]),
            np.concatenate(channel),
            workers,
            questions,
            tuple(channels),
            parts[0].domain,
            None if all(part.number is None for part in parts) else np.concatenate(numbers),
        )

    def __len__(self) -> int:
        return len(self.report)

    def __repr__(self) -> str:
        promises = dict.fromkeys(channel.guarantee for channel in self.channels)
        loss = "; ".join(f"ε ≤ {round_up(each.epsilon)} per {each.unit}" for each in promises if each.protected)
        privacy = loss if self.protected else f"{loss}; not protected" if loss else "not protected"
        size = f"{len(self):,} of {self.n_workers:,} workers on {self.n_questions:,} questions"
        return f"Reports: {size}, {self.domain!r}, {privacy}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), constructor_arguments(self)

    @property
    def n_workers(self) -> int:
        return len(self.workers)

    @property
    def n_questions(self) -> int:
        return len(self.questions)

    @property
    def protected(self) -> bool:
        """True when every channel has a guarantee."""
        return all(channel.guarantee.protected for channel in self.channels)

    def numbers(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For each row an unbiased number for the answer and the largest variance its noise can have."""
        value = np.zeros(len(self)) if self.number is None else self.number.copy()
        variance = np.zeros(len(self))
        for index, channel in enumerate(self.channels):
            rows = slice(None) if len(self.channels) == 1 else self.channel == index
            if isinstance(channel, NoiseRecord):
                variance[rows] = channel.variance
                continue
            scores, spread = channel.scores(self.domain.numbers)
            value[rows] = scores[self.report[rows]]
            variance[rows] = spread[: channel.n_levels].max()
        return value, variance

    def rows(self, chosen: NDArray[Any]) -> Reports:
        """A part of the rows with the same dictionaries."""
        return replace(
            self,
            worker=self.worker[chosen],
            question=self.question[chosen],
            report=self.report[chosen],
            channel=self.channel[chosen],
            number=None if self.number is None else self.number[chosen],
        )


def _merge_ids(ids: list[NDArray[Any]], codes: list[NDArray[np.int32]]) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """The codes of all tables in one dictionary, in which ids stand in the order of their first table."""
    code_by_id: dict[Hashable, int] = {}
    merged = []
    for table_ids, table_codes in zip(ids, codes, strict=True):
        places = [code_by_id.setdefault(each, len(code_by_id)) for each in table_ids.tolist()]
        merged.append(np.array(places, dtype=np.int32)[table_codes])
    # Filled one by one: an id may be a tuple, which an array would take apart.
    dictionary = np.empty(len(code_by_id), dtype=object)
    for code, each in enumerate(code_by_id):
        dictionary[code] = each
    return np.concatenate(merged), dictionary
