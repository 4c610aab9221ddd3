"""Uneven answers: third moments tell a crowd that leans from classes of unequal size, block by block, through noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from inference.families import reported
from numpy.typing import NDArray

from crowdveil import Answers, Choices, Reports
from crowdveil.inference import ChannelBP, Majority
from crowdveil.inference.blocks import context_of
from crowdveil.inference.leaning import EITHER, foretold, part_of_classes

LEANING = ((0.92, 0.08), (0.4, 0.6))
PLAIN = ((0.8, 0.2), (0.2, 0.8))


def crowd(
    seed: int, confusion: tuple[tuple[float, float], ...], classes: float, n_questions: int, per_question: int
) -> tuple[Answers, NDArray[Any]]:
    """Sixty workers alike, two options, the first of which is the truth of this share of the questions."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_questions) >= classes).astype(np.int64)
    worker = np.argsort(rng.random((n_questions, 60)), axis=1)[:, :per_question].ravel()
    question = np.repeat(np.arange(n_questions), per_question)
    answer = (rng.random(len(worker)) >= np.array(confusion)[truth[question], 0]).astype(np.int64)
    return Answers(worker, question, answer, np.arange(60), np.arange(n_questions), Choices(("a", "b"))), truth


def part(reports: Reports) -> float:
    return float(ChannelBP(classes="weighed", max_iter=2).fit(reports).parameters["part"][0])


@pytest.mark.parametrize("epsilon", [None, 2.0])
def test_leanings_and_classes_are_told_apart(epsilon: float | None) -> None:
    lopsided, leaning = (
        part(reported(crowd(1, *recipe, n_questions=2000, per_question=12)[0], epsilon, 1))
        for recipe in ((PLAIN, 0.8), (LEANING, 0.5))
    )
    assert lopsided > 0.8
    assert leaning < 0.2


def test_two_reports_a_question_do_not_tell() -> None:
    answers, _ = crowd(2, LEANING, 0.5, n_questions=500, per_question=2)
    assert part(Reports.unprotected(answers)) == EITHER


def test_unanimous_answers_do_not_tell() -> None:
    assert part_of_classes(np.array([9.0, 0.0]), np.zeros((2, 2, 5))) == EITHER


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_third_moments_are_those_of_the_answers_whatever_the_noise(epsilon: float | None) -> None:
    reports = reported(crowd(3, PLAIN, 0.8, n_questions=6000, per_question=12)[0], epsilon, 3)
    third, weight, squares, mixed, weights = moments_of(reports)[0, 1]
    found = third / weight
    spread = np.sqrt(squares - 2 * found * mixed + found**2 * weights) / weight
    expected = foretold(np.array([0.68, 0.32]), 2 * 0.16 * 0.36)[1][0]
    assert expected == pytest.approx(-0.16 * 0.6 * 0.6**3)
    assert abs(found - expected) < 5 * spread


def moments_of(reports: Reports) -> NDArray[Any]:
    model = ChannelBP(classes="weighed").model(context_of(reports))
    session = ChannelBP().engine.open(model, reports, None)
    moments: NDArray[Any] = session.e_pass(model.m_step(session.e_pass({}), {}))["moments"]
    return moments


def test_a_leaning_crowd_does_not_put_channel_bp_below_the_vote() -> None:
    gain = []
    for seed in range(8):
        answers, truth = crowd(seed, LEANING, 0.5, n_questions=300, per_question=11)
        reports = reported(answers, 1.0, seed)
        methods = (Majority(), ChannelBP(classes="weighed"), ChannelBP(classes="learned"))
        vote, weighed, learned = ((method.fit(reports).value == truth).mean() for method in methods)
        gain.append((weighed - vote, learned - vote))
    mean, error = np.mean(gain, axis=0), np.std(gain, axis=0, ddof=1) / np.sqrt(len(gain))
    assert mean[0] >= -2 * error[0]
    assert mean[1] < -2 * error[1]
