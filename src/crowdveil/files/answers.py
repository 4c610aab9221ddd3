"""Answers files: worker, question, answer; an empty answer is ∅."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.answers import Answers, check_unique
from crowdveil.domain import EMPTY, Choices, Domain
from crowdveil.errors import DomainError
from crowdveil.files.problems import answered_twice
from crowdveil.files.table import TextTable, both_ids, read_table
from crowdveil.files.write import write_table


def read_answers(path: str | Path, domain: Domain | None = None) -> Answers:
    """Read answers; without a domain they are choices among the values seen."""
    return answers_in(read_table(path, ["worker", "question", "answer"]), domain)


def answers_in(table: TextTable, domain: Domain | None) -> Answers:
    """The answers of a table that has been read already."""
    (worker, workers), (question, questions) = both_ids(table)
    refuse_duplicates(table, worker, question, len(questions))
    codes, texts = table.coded("answer")
    domain = domain or choices_seen(table, codes, texts)
    return Answers(worker, question, _encode(table, codes, texts, domain), workers, questions, domain)


def choices_seen(table: TextTable, codes: NDArray[np.int32], texts: list[str | None]) -> Choices:
    """The values seen; NaN is none."""
    for place, text in enumerate(texts):
        if text is not None and text.strip().lower() == "nan":
            row = int(np.argmax(codes == place))
            raise table.wrong("an answer must not be NaN", row, "answer", "leave the cell empty or drop the row")
    seen = [text for text in texts if text is not None]
    if not seen:
        raise table.wrong("no row has an answer", 0, "answer", "give at least one")
    return choices_of(seen)


def choices_of(seen: Iterable[str]) -> Choices:
    """Options that were seen: numbers in their order, other words in alphabetical order."""
    listed = list(seen)
    try:
        return Choices(tuple(sorted(listed, key=float)))
    except ValueError:
        return Choices(tuple(sorted(listed)))


def _encode(table: TextTable, codes: NDArray[np.int32], texts: list[str | None], domain: Domain) -> NDArray[np.int32]:
    places = np.full(len(texts), EMPTY, dtype=np.int32)
    for place, text in enumerate(texts):
        try:
            places[place] = domain.code(text)
        except DomainError as error:
            row = int(np.argmax(codes == place))
            raise table.wrong(error.problem, row, "answer", error.fix) from None
    encoded: NDArray[np.int32] = places[codes]
    return encoded


def refuse_duplicates(
    table: TextTable, worker: NDArray[np.int32], question: NDArray[np.int32], n_questions: int
) -> None:
    """A worker answers a question once; a second row is a mistake or a second spend, never silently merged."""
    repeated = check_unique(worker, question, n_questions)
    if repeated is not None:
        raise table.refuse(answered_twice(), repeated)


def write_answers(path: str | Path, answers: Answers) -> None:
    """Write answers as CSV or Parquet, by the extension."""
    write_table(
        path,
        {
            "worker": pa.array(answers.workers[answers.worker].astype(str)),
            "question": pa.array(answers.questions[answers.question].astype(str)),
            "answer": pa.array(answers.domain.decode(answers.answer), pa.string()),
        },
    )
