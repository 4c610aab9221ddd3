"""MACE: spammers and their strategies are recovered, the objective rises, channels are taken out."""

from __future__ import annotations

import numpy as np
import pytest

from crowdveil import Answers, Choices, RandomizedResponse, Reports, entropy_from
from crowdveil.inference import Mace, Majority
from crowdveil.inference.engine.blocks import split_blocks, table_context


def draw_crowd(seed: int) -> tuple[Answers, np.ndarray]:
    """30 workers answer 400 questions; ten know the truth in a tenth of the cases and otherwise answer "c"."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 3, 400)
    knowledge = np.where(np.arange(30) < 20, 0.8, 0.1)
    worker, question = np.divmod(np.arange(30 * 400), 400)
    known = random.random(len(worker)) < knowledge[worker]
    spam = np.where(worker < 20, random.integers(0, 3, len(worker)), 2)
    answer = np.where(known, truth[question], spam)
    return Answers(worker, question, answer, list(range(30)), list(range(400)), Choices(("a", "b", "c"))), truth


@pytest.mark.parametrize("epsilon", [None, 2.0])
def test_knowledge_and_strategies_are_recovered(epsilon: float | None) -> None:
    answers, truth = draw_crowd(1)
    reports = Reports.unprotected(answers)
    if epsilon is not None:
        reports = RandomizedResponse(epsilon=epsilon).randomize(answers, entropy_from(7))
    estimate = Mace().fit(reports)
    knowledge, strategy = estimate.parameters["knowledge"], estimate.parameters["strategy"]
    # θ of one worker: a share among 400 answers, 2.2 times as wide through the channel at ε 2; the mean over ten.
    assert knowledge[:20].mean() == pytest.approx(0.8, abs=0.05)
    assert knowledge[20:].mean() == pytest.approx(0.1, abs=0.05)
    assert strategy[20:, 2].mean() > 0.95
    assert (estimate.value == truth).mean() >= (Majority().fit(reports).value == truth).mean()


def test_a_pass_equals_the_formulas() -> None:
    """Without a channel: E-step and M-step as Hovy et al. print them."""
    answers, _ = draw_crowd(2)
    reports = Reports.unprotected(answers)
    model = Mace(smoothing=0.3).model(table_context(reports))
    (block,) = split_blocks(reports, 1)
    random = np.random.default_rng(3)
    parameters = dict(model.init())
    theta = parameters["knowledge"] = random.uniform(0.2, 0.9, 30)
    xi = parameters["strategy"] = random.dirichlet(np.ones(3), 30)
    statistics, _ = model.e_step(block, parameters, model.begin(block))
    updated = model.m_step(statistics, parameters)

    answer = np.empty((30, 400), dtype=int)
    answer[answers.worker, answers.question] = answers.answer
    spam = np.take_along_axis(xi, answer, axis=1)[:, :, None] * (1 - theta)[:, None, None]
    known = theta[:, None, None] * (answer[:, :, None] == np.arange(3))
    posterior = np.prod(known + spam, axis=0)
    posterior /= posterior.sum(axis=1, keepdims=True)
    knowing = (posterior * known / (known + spam)).sum(axis=2)
    np.testing.assert_allclose(updated["knowledge"], (knowing.sum(axis=1) + 0.1) / (400 + 0.2), atol=1e-10)
    counts = np.stack([((1 - knowing) * (answer == option)).sum(axis=1) + 0.1 for option in range(3)], axis=1)
    np.testing.assert_allclose(updated["strategy"], counts / counts.sum(axis=1, keepdims=True), atol=1e-10)


@pytest.mark.parametrize("hidden", [False, True])
def test_the_objective_rises_with_every_pass(hidden: bool) -> None:
    mechanism = RandomizedResponse(epsilon=2.0, protect_participation=hidden)
    estimate = Mace(max_iter=50, tol=-1.0).fit(mechanism.randomize(draw_crowd(4)[0], entropy_from(5)))
    assert (np.diff(estimate.trace) >= -1e-9 * abs(estimate.trace[0])).all()
