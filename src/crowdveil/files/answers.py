"""Answers files: worker, question, answer; an empty answer is ∅."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.answers import Answers, check_unique
from crowdveil.domain import EMPTY, Choices, Domain, Label
from crowdveil.errors import DomainError
from crowdveil.files.options import (
    MAX_TEXT_OPTIONS,
    MISSING_TEXTS,
    comparison_key,
    describe_difference,
    find_similar,
    join_similar,
    options_by_key,
)
from crowdveil.files.options import choices_of as choices_of
from crowdveil.files.problems import answered_twice
from crowdveil.files.table import TextTable, both_ids, read_table
from crowdveil.files.write import label_column, plain_column, write_table


def read_answers(
    path: str | Path,
    domain: Domain | None = None,
    *,
    worker: str | None = None,
    question: str | None = None,
    answer: str | None = None,
    normalize: bool = False,
) -> Answers:
    """Read answers; without a domain they are choices among the values seen.

    `worker`, `question` and `answer` name the columns where the file names them otherwise. `normalize` joins spellings
    of an option that differ only in white space, case or Unicode form; otherwise these are refused.
    """
    names = {"worker": worker, "question": question, "answer": answer}
    return answers_in(read_table(path, ["worker", "question", "answer"], names=names), domain, normalize=normalize)


def answers_in(table: TextTable, domain: Domain | None, *, normalize: bool = False) -> Answers:
    """The answers of a table that has been read already."""
    (worker, workers), (question, questions) = both_ids(table)
    refuse_duplicates(table, worker, question, len(questions))
    codes, texts = table.coded("answer")
    domain = domain or choices_seen(table, codes, texts, normalize=normalize)
    return Answers(worker, question, _encode(table, codes, texts, domain, normalize), workers, questions, domain)


def choices_seen(
    table: TextTable, codes: NDArray[np.int32], texts: list[str | None], *, normalize: bool = False
) -> Choices:
    """The categories of the column in their order, or else the values seen; labels keep the type they have there."""
    if table.label_type is not str:
        labels = table.categories or tuple(map(table.label, (text for text in texts if text is not None)))
        return choices_of(labels) if labels and not table.categories else _categories(table, labels)
    seen = [str(category) for category in table.categories] or [text for text in texts if text is not None]
    _check_texts(table, codes, texts, seen)
    if normalize:
        sizes = zip(texts, np.bincount(codes, minlength=len(texts)).tolist(), strict=True)
        joined = join_similar(dict.fromkeys(seen, 0) | {text: size for text, size in sizes if text is not None})
        seen = list(dict.fromkeys(joined[text] for text in seen))
    elif (pair := find_similar(seen)) is not None:
        problem = f"the options {pair[0]!r} and {pair[1]!r} differ only in {describe_difference(*pair)}"
        row = max(_first_row(codes, texts, text) for text in pair)
        raise table.wrong(problem, row, "answer", "correct one, normalize the answers, or name both as options")
    return _categories(table, tuple(seen)) if table.categories else choices_of(seen)


def _categories(table: TextTable, labels: tuple[Label, ...]) -> Choices:
    if not labels:
        raise table.wrong("no row has an answer", 0, "answer", "give at least one")
    return Choices(labels)


def _check_texts(table: TextTable, codes: NDArray[np.int32], texts: list[str | None], seen: list[str]) -> None:
    """Texts that can be options: some, not too many, and none that programs write for a missing value."""
    for text in seen:
        if text.strip().lower() in MISSING_TEXTS:
            problem = f"the answer {text!r} may be missing or an option"
            fix = "leave the cell empty, or name it among the options"
            raise table.wrong(problem, _first_row(codes, texts, text), "answer", fix)
    if not seen:
        raise table.wrong("no row has an answer", 0, "answer", "give at least one")
    if len(seen) > MAX_TEXT_OPTIONS and not table.categories and not _are_numbers(seen):
        problem = f"{len(seen)} different texts are free text, not options"
        raise table.wrong(problem, 0, "answer", "name the options, or choose another column")


def _are_numbers(texts: list[str]) -> bool:
    try:
        return all(map(np.isfinite, map(float, texts)))
    except ValueError:
        return False


def _first_row(codes: NDArray[np.int32], texts: list[str | None], text: str) -> int:
    return int(np.argmax(codes == texts.index(text))) if text in texts else 0


def _encode(
    table: TextTable, codes: NDArray[np.int32], texts: list[str | None], domain: Domain, normalize: bool
) -> NDArray[np.int32]:
    similar = options_by_key(domain) if isinstance(domain, Choices) else {}
    places = np.full(len(texts), EMPTY, dtype=np.int32)
    for place, text in enumerate(texts):
        try:
            places[place] = domain.code(text)
        except DomainError as error:
            near = similar.get(comparison_key(text or ""))
            if near is not None and normalize:
                places[place] = near
                continue
            fix = error.fix
            if near is not None:
                option = domain.symbols[near]
                difference = describe_difference(option, text or "")
                fix = f"it differs from {option!r} only in {difference}: correct it, or normalize the answers"
            raise table.wrong(error.problem, int(np.argmax(codes == place)), "answer", fix) from None
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
    """Write answers as CSV or Parquet, by the extension; in Parquet the labels keep their type."""
    write_table(
        path,
        {
            "worker": pa.array(answers.workers[answers.worker].astype(str)),
            "question": pa.array(answers.questions[answers.question].astype(str)),
            "answer": plain_column(label_column(path, answers.answer, answers.domain)),
        },
    )
