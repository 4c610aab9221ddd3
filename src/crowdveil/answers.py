"""Answers: what workers believe. They exist on devices, in simulations and in files, never on the broker."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import EMPTY, Domain
from crowdveil.errors import InputError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answers:
    """Columns of codes with the dictionaries they point into; code -1 is ∅, "not answered".

    `workers` and `questions` may hold ids without a row: with participation protected they report too.

    >>> from crowdveil.domain import Choices
    >>> answers = Answers.from_rows([("ada", "q1", "yes"), ("bob", "q1", "no")], Choices(("no", "yes")))
    >>> answers.answer
    array([1, 0], dtype=int32)
    """

    worker: NDArray[np.int32]
    question: NDArray[np.int32]
    answer: NDArray[np.int32]
    workers: NDArray[Any]
    questions: NDArray[Any]
    domain: Domain

    def __post_init__(self) -> None:
        columns = ("worker", "question", "answer")
        for name in columns:
            object.__setattr__(self, name, frozen_column(getattr(self, name), np.int32))
        for name in ("workers", "questions"):
            object.__setattr__(self, name, frozen_ids(getattr(self, name)))
        check_columns(self, columns)
        check_codes("answer", self.answer, EMPTY, self.domain.size)
        check_codes("worker", self.worker, 0, len(self.workers))
        check_codes("question", self.question, 0, len(self.questions))

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[Hashable, Hashable, object]], domain: Domain) -> Answers:
        """From (worker, question, answer) triples; an answer of None is ∅."""
        listed = list(rows)
        worker, workers = codes_of([row[0] for row in listed])
        question, questions = codes_of([row[1] for row in listed])
        return cls(worker, question, domain.encode(row[2] for row in listed), workers, questions, domain)

    def __len__(self) -> int:
        return len(self.answer)

    def __repr__(self) -> str:
        people, asked = len(self.workers), len(self.questions)
        return f"Answers: {len(self):,} of {people:,} workers to {asked:,} questions, {self.domain!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), constructor_arguments(self)

    def grid(self) -> NDArray[np.int32]:
        """The answer code of every worker (row) to every question (column); ∅ where there is none."""
        grid = np.full((len(self.workers), len(self.questions)), EMPTY, dtype=np.int32)
        grid[self.worker, self.question] = self.answer
        return grid


def constructor_arguments(table: Any) -> tuple[Any, ...]:
    """What a dataclass was made from: copies and pickles are made by the constructor, so that arrays stay read-only."""
    return tuple(getattr(table, each.name) for each in fields(table) if each.init)


def frozen_column(values: Any, dtype: Any) -> NDArray[Any]:
    """The values as a read-only array, without a copy where they already fit; codes are never cut to fit."""
    given = np.asarray(values)
    if np.issubdtype(dtype, np.integer) and given.dtype != dtype and given.size:
        _check_fits(given, np.dtype(dtype))
    column: NDArray[Any] = np.ascontiguousarray(given, dtype=dtype).view()
    column.flags.writeable = False
    return column


def _check_fits(given: NDArray[Any], dtype: np.dtype[Any]) -> None:
    limits = np.iinfo(dtype)
    if given.dtype.kind not in "iu" or given.min() < limits.min or given.max() > limits.max:
        raise InputError(f"codes must be whole numbers from {limits.min} to {limits.max}; got others")


def frozen_ids(ids: Any) -> NDArray[Any]:
    """A dictionary of ids as a read-only array; ids of mixed kinds stay Python objects."""
    if not isinstance(ids, np.ndarray):
        listed = list(ids)
        ids = np.empty(len(listed), dtype=object)
        ids[:] = listed
    view: NDArray[Any] = ids.view()
    view.flags.writeable = False
    return view


def codes_of(values: Sequence[Hashable]) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Dense codes in order of first appearance, and the dictionary."""
    index: dict[Hashable, int] = {}
    codes = np.fromiter((index.setdefault(value, len(index)) for value in values), dtype=np.int32, count=len(values))
    return codes, frozen_ids(index)


def check_columns(table: object, names: Sequence[str]) -> None:
    """All columns have one length."""
    lengths = {name: len(getattr(table, name)) for name in names}
    if len(set(lengths.values())) > 1:
        raise InputError(f"all columns must have the same length; got {lengths}")


def check_codes(name: str, codes: NDArray[Any], low: int, high: int) -> None:
    """Every code points into its dictionary."""
    wrong = np.flatnonzero((codes < low) | (codes >= high))
    if len(wrong):
        raise InputError(
            f"{name} codes must be from {low} to {high - 1}; got {codes[wrong[0]]}", row=int(wrong[0]) + 1, field=name
        )


def check_unique(worker: NDArray[Any], question: NDArray[Any], n_questions: int) -> int | None:
    """The first row that repeats an earlier (worker, question) pair, or None."""
    pair = worker.astype(np.int64) * n_questions + question
    # Sorting alone is several times faster than sorting places; only a table that has repeats pays for those.
    ordered = np.sort(pair)
    if not (ordered[1:] == ordered[:-1]).any():
        return None
    order = np.argsort(pair, kind="stable")
    repeats = order[1:][pair[order[1:]] == pair[order[:-1]]]
    return int(repeats.min())
