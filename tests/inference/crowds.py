"""Small crowds for the tests of inference: known truths, workers of known skill."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil import Answers, Choices, Reports, Scale
from crowdveil.entropy import entropy_from
from crowdveil.mechanisms import mechanism


def choice_crowd(
    seed: int,
    *,
    n_workers: int = 40,
    n_questions: int = 200,
    n_options: int = 3,
    per_question: int = 8,
    skill: tuple[float, float] = (0.5, 0.95),
) -> tuple[Answers, NDArray[Any]]:
    """Workers who are right with their own probability, and otherwise choose any other option."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_options, n_questions)
    right = rng.uniform(*skill, n_workers)
    worker = np.concatenate([rng.choice(n_workers, per_question, replace=False) for _ in range(n_questions)])
    question = np.repeat(np.arange(n_questions), per_question)
    wrong = (truth[question] + rng.integers(1, max(n_options, 2), len(worker))) % n_options
    answer = np.where(rng.random(len(worker)) < right[worker], truth[question], wrong)
    domain = Choices(tuple(f"option {code}" for code in range(n_options)))
    return Answers(worker, question, answer, np.arange(n_workers), np.arange(n_questions), domain), truth


def number_crowd(
    seed: int,
    *,
    n_workers: int = 60,
    n_questions: int = 150,
    per_question: int = 12,
    spread: tuple[float, float] = (0.5, 2),
) -> tuple[Answers, NDArray[Any]]:
    """Workers whose errors are normal with their own spread, on the levels 0 to 20."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(6, 14, n_questions)
    sigma = rng.uniform(*spread, n_workers)
    worker = np.concatenate([rng.choice(n_workers, per_question, replace=False) for _ in range(n_questions)])
    question = np.repeat(np.arange(n_questions), per_question)
    answer = np.clip(np.rint(rng.normal(truth[question], sigma[worker])), 0, 20).astype(np.int32)
    return Answers(worker, question, answer, np.arange(n_workers), np.arange(n_questions), Scale(0, 20)), truth


def agreeing_crowd(
    seed: int,
    *,
    n_questions: int = 400,
    per_question: int = 30,
    n_levels: int = 5,
    spam: float = 0.0,
    spread: float = 0.1,
    on_levels: bool = False,
) -> tuple[Answers, NDArray[Any]]:
    """Workers who agree within a tenth of a level about truths between the levels or on them; some answer at random."""
    rng = np.random.default_rng(seed)
    n_workers = 2 * per_question
    truth = rng.uniform(0.15 * (n_levels - 1), 0.85 * (n_levels - 1), n_questions)
    truth = np.rint(truth) if on_levels else truth
    worker = np.concatenate([rng.choice(n_workers, per_question, replace=False) for _ in range(n_questions)])
    question = np.repeat(np.arange(n_questions), per_question)
    answer = np.clip(np.rint(rng.normal(truth[question], spread)), 0, n_levels - 1).astype(np.int32)
    lost = (rng.random(n_workers) < spam)[worker]
    answer = np.where(lost, rng.integers(0, n_levels, len(worker)), answer)
    domain = Scale(0, n_levels - 1)
    return Answers(worker, question, answer, np.arange(n_workers), np.arange(n_questions), domain), truth


def protected(answers: Answers, epsilon: float, seed: int, **parameters: Any) -> Reports:
    """The answers through randomised response."""
    return mechanism("randomized-response", epsilon=epsilon, **parameters).randomize(answers, entropy_from(seed))
