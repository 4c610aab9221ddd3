"""A simulated crowd: its answers, the truths behind them, and what each worker is like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.domain import Choices, Domain
from crowdveil.errors import InputError

# Beyond, sums are no numbers any more.
LARGEST = 1e100
# Answers drawn at a time: what is needed besides the table itself stays in the processor's cache.
CHUNK_ANSWERS = 1 << 16

Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Crowd:
    """A simulated crowd: its answers with the truths and skills behind them.

    `truth` holds option codes for choices and real numbers for scales (they may lie outside the scale).

    `skill` is the probability of a right answer (choices) or the standard deviation of the error (scales).
    `notes` are further columns about the workers, such as the privacy level each would choose.
    """

    answers: Answers
    truth: NDArray[Any]
    skill: NDArray[np.float64]
    notes: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def truths(self) -> dict[str, str]:
        """The truth of each question in the words of a truth file."""
        domain = self.answers.domain
        spelled = domain.decode(self.truth) if isinstance(domain, Choices) else [repr(float(t)) for t in self.truth]
        return {str(question): str(text) for question, text in zip(self.answers.questions, spelled, strict=True)}


def names(letter: str, n: int) -> NDArray[Any]:
    """Ids that sort as they are counted: w001, w002, …"""
    width = len(str(n))
    ids = np.empty(n, dtype=object)
    ids[:] = [f"{letter}{number:0{width}d}" for number in range(1, n + 1)]
    return ids


def draw_participation(
    n_workers: int, n_questions: int, share: float, answers_per_worker: int | None, rng: np.random.Generator
) -> tuple[Codes, Codes]:
    """Who answers what, as the worker and the question of every answer, sorted by both.

    Each cell by itself with probability `share`, or so many different questions for each worker, all sets alike. Cells
    that stay empty are never drawn: time and memory grow with the answers.
    """
    if answers_per_worker is None:
        return _draw_cells(n_workers, n_questions, share, rng)
    n_each = min(answers_per_worker, n_questions)
    worker = np.repeat(np.arange(n_workers, dtype=np.int32), n_each)
    question = np.empty((n_workers, n_each), dtype=np.int32)
    # Random keys cost a number per question; random questions one per answer, but many rejections if n_each² is large.
    by_rejection = n_each**2 <= n_questions
    n_rows = max(CHUNK_ANSWERS // (n_each if by_rejection else n_questions), 1)
    for start in range(0, n_workers, n_rows):
        rows = question[start : start + n_rows]
        rows[:] = (
            _draw_distinct(len(rows), n_each, n_questions, rng)
            if by_rejection
            else (np.argpartition(rng.random((len(rows), n_questions)), n_each - 1, axis=1)[:, :n_each])
        )
        rows.sort(axis=1)
    return worker, question.ravel()


def _draw_cells(n_workers: int, n_questions: int, share: float, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Cells of independent coins: from one that is answered to the next it is a geometric number of cells."""
    n_cells, last = n_workers * n_questions, -1
    workers, questions = list[Codes](), list[Codes]()
    while last < n_cells:
        expected = (n_cells - last) * share
        n_gaps = min(CHUNK_ANSWERS, int(expected + 5 * np.sqrt(expected)) + 16)
        cells = last + np.cumsum(np.minimum(rng.geometric(share, n_gaps), n_cells + 1))
        last = int(cells[-1])
        worker, question = np.divmod(cells[cells < n_cells], n_questions)
        workers.append(worker.astype(np.int32))
        questions.append(question.astype(np.int32))
    worker_column = np.concatenate(workers)
    del workers
    return worker_column, np.concatenate(questions)


def _draw_distinct(n_rows: int, n_each: int, n_questions: int, rng: np.random.Generator) -> Codes:
    """Rows of different questions: a row with a question twice is drawn again, so that all sets are alike."""
    rows = rng.integers(n_questions, size=(n_rows, n_each), dtype=np.int32)
    again = np.arange(n_rows)
    while len(again):
        in_order = np.sort(rows[again], axis=1)
        again = again[(in_order[:, 1:] == in_order[:, :-1]).any(axis=1)]
        rows[again] = rng.integers(n_questions, size=(len(again), n_each), dtype=np.int32)
    return rows


def draw_answers(worker: Codes, question: Codes, draw: Callable[[Codes, Codes], NDArray[Any]]) -> Codes:
    """The answer code of every (worker, question), drawn in chunks: intermediate results never hold all answers."""
    answer = np.empty(len(worker), dtype=np.int32)
    for start in range(0, len(answer), CHUNK_ANSWERS):
        chunk = slice(start, start + CHUNK_ANSWERS)
        answer[chunk] = draw(worker[chunk], question[chunk])
    return answer


def numbered_answers(
    worker: NDArray[Any], question: NDArray[Any], answer: NDArray[Any], n_workers: int, n_questions: int, domain: Domain
) -> Answers:
    """A table that knows all workers and questions, w1, w2, … and q1, q2, …, those without an answer included."""
    return Answers(worker, question, answer, names("w", n_workers), names("q", n_questions), domain)


def generator(seed: int | None) -> np.random.Generator:
    """What a crowd is drawn from."""
    if seed is not None and seed < 0:
        raise InputError(f"the seed of a crowd must be 0 or more; got {seed}")
    return np.random.default_rng(seed)


def are_shares(numbers: Sequence[float]) -> bool:
    """Numbers that become probabilities when they are divided by their sum."""
    return all(0 <= number <= LARGEST for number in numbers) and any(numbers)
