"""The bounds of a value's probability hold what somebody would say who knows every worker exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from inference.families import reported
from numpy.typing import NDArray

from crowdveil import Answers, Choices, Reports
from crowdveil.inference import method
from crowdveil.inference.uncertainty.parameter_variance import as_known, weakest

Array = NDArray[Any]
K, QUESTIONS, EACH, WORKERS = 3, 300, 7, 60
EPSILONS = (None, 4.0, 2.0, 1.0, 0.5)
CLOSE = 0.01
"""A bound of .999 does not fail for a probability of .9999."""


def _crowd(seed: int) -> tuple[Answers, Array]:
    """Answers of workers with a coin each, and their skills."""
    rng = np.random.default_rng(seed)
    skill = rng.beta(6, 3, WORKERS)
    truth = rng.integers(K, size=QUESTIONS)
    question = np.repeat(np.arange(QUESTIONS), EACH)
    worker = np.concatenate([rng.choice(WORKERS, EACH, replace=False) for _ in range(QUESTIONS)])
    wrong = (truth[question] + rng.integers(1, K, len(question))) % K
    answer = np.where(rng.random(len(question)) < skill[worker], truth[question], wrong)
    options = Choices(tuple("abc"))
    return Answers(worker, question, answer, np.arange(WORKERS), np.arange(QUESTIONS), options), skill


def _of_who_knows(reports: Reports, skill: Array) -> Array:
    """The posteriors from even classes and the workers' true skills."""
    confusion = np.repeat(((1 - skill) / (K - 1))[:, None, None], K, axis=1).repeat(K, axis=2)
    confusion[:, np.arange(K), np.arange(K)] = skill[:, None]
    logs = np.log(confusion @ reports.channels[0].table)
    total = np.zeros((QUESTIONS, K))
    np.add.at(total, reports.question, logs[reports.worker, :, reports.report])
    shares = np.exp(total - total.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("name", ["one-coin", "dawid-skene", "channel-bp"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_bounds_hold_the_probability_of_who_knows_the_workers(name: str, epsilon: float | None) -> None:
    held = []
    for seed in range(8):
        answers, skill = _crowd(seed)
        reports = reported(answers, epsilon, seed + 100)
        known, estimate = _of_who_knows(reports, skill), method(name).fit(reports)
        there = known[np.arange(QUESTIONS), estimate.value]
        held.append(np.mean((estimate.low - CLOSE <= there) & (there <= estimate.high + CLOSE)))
    # Crowds differ more than questions do; counting reports as answers holds .36 to .84 from ε = 4 down.
    assert np.mean(held) > 0.88, f"held in {np.mean(held):.3f} of the cases"


@pytest.mark.parametrize("name", ["one-coin", "dawid-skene"])
def test_bounds_are_no_narrower_under_more_noise(name: str) -> None:
    answers, _ = _crowd(3)
    lengths = []
    for epsilon in (None, 4.0, 2.0, 1.0):
        estimate = method(name).fit(reported(answers, epsilon, 5))
        lengths.append(float(np.mean(estimate.high - estimate.low)))
    assert lengths == sorted(lengths)


def test_a_guess_tells_nothing_about_its_worker_and_a_certain_truth_all() -> None:
    posterior = np.array([[0.25] * 4, [1.0, 0, 0, 0], [0.625, 0.125, 0.125, 0.125]])
    np.testing.assert_allclose(as_known(posterior), [0, 1, 0.25])


def test_a_prior_is_weaker_than_fitted_and_comes_to_it_with_reports() -> None:
    strengths = [weakest(50.0, np.full(n, 20.0), 4.0) for n in (1, 10, 1000, 100_000)]
    assert strengths == sorted(strengths)
    assert strengths[0] < 3
    assert 45 < strengths[-1] < 50
