"""GLAD: the compiled pass against plain NumPy, the rising objective, difficulties that are recovered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from crowdveil import Answers, Choices, RandomizedResponse, Reports, entropy_from
from crowdveil.inference import Glad
from crowdveil.inference.engine.blocks import split_blocks, table_context

Array = NDArray[Any]


def draw_crowd(n_options: int, seed: int) -> tuple[Answers, Array, Array]:
    """40 workers, 120 questions, half of the cells; abilities and difficulties differ."""
    random = np.random.default_rng(seed)
    ability, easiness = random.normal(1.2, 0.8, 40), np.exp(random.normal(0.3, 0.8, 120))
    truth = random.integers(0, n_options, 120)
    worker, question = np.nonzero(random.random((40, 120)) < 0.5)
    right = random.random(len(worker)) < expit(ability[worker] * easiness[question])
    wrong = (truth[question] + random.integers(1, n_options, len(worker))) % n_options
    answer = np.where(right, truth[question], wrong)
    options = Choices(tuple("abcde"[:n_options]))
    answers = Answers(worker, question, answer, list(range(40)), list(range(120)), options)
    return answers, truth, easiness


def randomize(answers: Answers, epsilon: float | None, hidden: bool) -> Reports:
    if epsilon is None:
        return Reports.unprotected(answers)
    return RandomizedResponse(epsilon=epsilon, protect_participation=hidden).randomize(answers, entropy_from(3))


CASES = pytest.mark.parametrize(("n_options", "epsilon", "hidden"), [(2, None, False), (3, 2.0, False), (3, 2.0, True)])


@CASES
def test_a_pass_equals_the_formulas(n_options: int, epsilon: float | None, hidden: bool) -> None:
    reports = randomize(draw_crowd(n_options, 1)[0], epsilon, hidden)
    model = Glad().model(table_context(reports))
    (block,) = split_blocks(reports, 1)
    state, parameters = model.begin(block), dict(model.init())
    random = np.random.default_rng(2)
    parameters["ability"] = random.normal(1, 1, 40)
    state.log_easiness[:] = random.normal(0.5, 0.7, 120)
    statistics, advanced = model.e_step(block, parameters, state)

    alpha, beta = parameters["ability"][block.worker], np.exp(state.log_easiness)[block.question]
    rate = parameters["response_rate"][block.worker][:, None]
    correct = expit(alpha * beta)[:, None]
    table = model.emission.table[:, state.symbol].T
    here, empty = table[:, :n_options], table[:, n_options:].sum(axis=1, keepdims=True)
    elsewhere = (here.sum(axis=1, keepdims=True) - here) / (n_options - 1)
    chance = rate * (correct * here + (1 - correct) * elsewhere) + (1 - rate) * empty
    logs = np.full((120, n_options), -np.log(n_options))
    np.add.at(logs, block.question, np.log(chance))
    posterior = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    np.testing.assert_allclose(advanced.posterior, posterior, atol=1e-12)
    penalty = ((state.log_easiness - 1) ** 2).sum() / 2
    np.testing.assert_allclose(statistics["log_likelihood"], logsumexp(logs, axis=1).sum() - penalty)

    share = posterior[block.question] * rate / chance
    right, wrong = (share * correct * here).sum(axis=1), (share * (1 - correct) * elsewhere).sum(axis=1)
    updated = np.exp(advanced.log_easiness)[block.question]
    slope = np.bincount(block.worker, updated * (right - wrong) / 2, minlength=40)
    np.testing.assert_allclose(statistics["sums"][:, 0], slope, atol=1e-10)
    weight = np.tanh(alpha * beta / 2) / (2 * alpha * beta)
    curvature = np.bincount(block.worker, updated**2 * weight * (right + wrong), minlength=40)
    np.testing.assert_allclose(statistics["sums"][:, 1], curvature, atol=1e-10)
    score = (share * (here - elsewhere) * correct * (1 - correct)).sum(axis=1)
    np.testing.assert_allclose(
        statistics["sums"][:, 2], np.bincount(block.worker, (beta * score) ** 2, minlength=40), atol=1e-10
    )

    # The questions' step: the gradient of the bound vanishes, or the step climbed.
    slopes = np.bincount(block.question, alpha * (right - wrong) / 2, minlength=120)
    curvatures = np.bincount(block.question, alpha**2 * weight * (right + wrong), minlength=120)
    before, after = (
        slopes * np.exp(each) - curvatures * np.exp(2 * each) / 2 - (each - 1) ** 2 / 2
        for each in (state.log_easiness, advanced.log_easiness)
    )
    assert (after >= before - 1e-12).all()
    assert (after - before).sum() > 1


@CASES
def test_the_objective_rises_with_every_pass(n_options: int, epsilon: float | None, hidden: bool) -> None:
    estimate = Glad(max_iter=60, tol=-1.0).fit(randomize(draw_crowd(n_options, 4)[0], epsilon, hidden))
    assert len(estimate.trace) == 60
    assert (np.diff(estimate.trace) >= -1e-9 * abs(estimate.trace[0])).all()


def test_abilities_are_recovered_and_labels_beat_the_vote() -> None:
    answers, truth, _ = draw_crowd(2, 5)
    estimate = Glad().fit(answers)
    votes = np.zeros((120, 2))
    np.add.at(votes, (answers.question, answers.answer), 1)
    assert (estimate.value == truth).mean() > (votes.argmax(axis=1) == truth).mean()
    abilities = np.random.default_rng(5).normal(1.2, 0.8, 40)
    assert np.corrcoef(abilities, estimate.parameters["ability"])[0, 1] > 0.8


def test_known_truths_are_kept() -> None:
    answers, truth, _ = draw_crowd(2, 6)
    gold = {question: "ab"[1 - truth[question]] for question in range(5)}
    assert [Glad(gold=gold).fit(answers).values()[question] for question in range(5)] == list(gold.values())
