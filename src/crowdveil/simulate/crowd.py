"""A simulated crowd: its answers, the truths behind them, and what each worker is like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.domain import Choices, Domain
from crowdveil.errors import InputError

# Beyond, sums are no numbers any more.
LARGEST = 1e100


@dataclass(frozen=True, slots=True, eq=False)
class Crowd:
    """`truth` holds option codes for choices and real numbers for scales (they may lie outside the scale).

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


def participation(
    n_workers: int, n_questions: int, share: float, answers_per_worker: int | None, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Who answers what: each cell by itself with probability `share`, or so many questions for each worker."""
    if answers_per_worker is None:
        return rng.random((n_workers, n_questions)) < share
    answered = np.zeros((n_workers, n_questions), dtype=bool)
    order = rng.permuted(np.tile(np.arange(n_questions), (n_workers, 1)), axis=1)
    np.put_along_axis(answered, order[:, : min(answers_per_worker, n_questions)], True, axis=1)
    return answered


def answers_of(grid: NDArray[Any], answered: NDArray[np.bool_], domain: Domain) -> Answers:
    """The answered cells of a worker × question grid as a table that knows all workers and questions."""
    worker, question = (place.astype(np.int32) for place in np.nonzero(answered))
    n_workers, n_questions = grid.shape
    return Answers(worker, question, grid[worker, question], names("w", n_workers), names("q", n_questions), domain)


def generator(seed: int | None) -> np.random.Generator:
    """What a crowd is drawn from."""
    if seed is not None and seed < 0:
        raise InputError(f"the seed of a crowd must be 0 or more; got {seed}")
    return np.random.default_rng(seed)


def are_shares(numbers: Sequence[float]) -> bool:
    """Numbers that become probabilities when they are divided by their sum."""
    return all(0 <= number <= LARGEST for number in numbers) and any(numbers)
