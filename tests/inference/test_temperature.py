"""Sureness: the power of the posteriors that foretells reports best, exactly and on crowds whose questions mislead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from inference.families import calibration_error

from crowdveil import Answers, Choices, Reports
from crowdveil.inference import ChannelBP, method
from crowdveil.inference.uncertainty.temperature import (
    ENOUGH,
    POWERS,
    fit_posterior_power,
    loo_log_predictive,
    sample_questions,
    temper,
)


def test_reports_are_foretold_by_what_the_others_say_to_a_power() -> None:
    rng = np.random.default_rng(1)
    classes, chance = np.array([0.5, 0.3, 0.2]), rng.uniform(0.05, 0.9, (4, 3))
    posterior = classes * chance.prod(axis=0)
    posterior /= posterior.sum()
    for power, found in zip(POWERS, loo_log_predictive(np.tile(posterior, (4, 1)), chance), strict=True):
        expected = 0.0
        for report in range(4):
            others = (classes * np.delete(chance, report, axis=0).prod(axis=0)) ** power
            expected += np.log(others @ chance[report] / others.sum())
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("place", [0.0, 0.3, 1.0, 4.5, 6.2, 11.9, 12.0])
@pytest.mark.parametrize("information", [2.0, 50.0, 1e6])
def test_the_power_is_the_best_less_a_standard_error(place: float, information: float) -> None:
    foretold = -information * (np.arange(len(POWERS)) - place) ** 2 / 2
    expected = max(place - 1 / np.sqrt(information), 0)
    assert fit_posterior_power(foretold) == pytest.approx(2 ** (-expected / 4))


def test_where_nothing_tells_posteriors_stay_as_they_are() -> None:
    assert fit_posterior_power(np.zeros(len(POWERS))) == 1
    assert fit_posterior_power(-np.arange(len(POWERS)) / 2.0) == 1
    # The best may lie beyond what was tried.
    assert fit_posterior_power(np.arange(len(POWERS)) ** 2.0) == POWERS[-1]


def test_tempering_keeps_what_is_certain_and_what_is_likeliest() -> None:
    posterior = np.array([[0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.2, 0.3, 0.5]])
    softer = temper(posterior, 0.5)
    np.testing.assert_allclose(softer.sum(axis=1), 1)
    np.testing.assert_allclose(softer[0], [0.75, 0.25, 0])
    assert softer[1].tolist() == [0, 1, 0]
    assert softer.argmax(axis=1).tolist() == posterior.argmax(axis=1).tolist()
    assert temper(posterior, 1.0) is posterior


def test_of_a_large_table_a_scattered_part_is_asked() -> None:
    assert sample_questions(7, ENOUGH).all()
    some = sample_questions(100_000, 10 * ENOUGH)
    assert some.mean() == pytest.approx(0.1, abs=0.002)
    # Neither every tenth question nor a run of them.
    assert 0.09 < some[::10].mean() < 0.11
    assert 0.09 < some[:1000].mean() < 0.11


def misleading(seed: int, *, part: float) -> tuple[Answers, np.ndarray]:
    """300 questions of three options, ten answers each; a `part` of them draws most people to one wrong option."""
    rng = np.random.default_rng(seed)
    truth, lure = rng.integers(0, 3, 300), rng.integers(1, 3, 300)
    hard = rng.random(300) < part
    worker = np.argsort(rng.random((300, 40)), axis=1)[:, :10].ravel()
    question = np.repeat(np.arange(300), 10)
    able = rng.uniform(0.5, 0.9, 40)[worker]
    drawn = (truth + lure)[question] % 3
    pulled = hard[question] & (rng.random(3000) < 0.5)
    answer = np.where(rng.random(3000) < able, truth[question], rng.integers(0, 3, 3000))
    answer = np.where(pulled, drawn, answer)
    return Answers(worker, question, answer, np.arange(40), np.arange(300), Choices(("a", "b", "c"))), truth


@pytest.mark.parametrize("name", ["channel-bp", "dawid-skene", "one-coin"])
def test_questions_that_mislead_make_posteriors_less_sure_and_better_calibrated(name: str) -> None:
    answers, truth = misleading(3, part=0.4)
    estimate = method(name).fit(Reports.unprotected(answers))
    posterior_power = estimate.provenance["posterior_power"]
    assert isinstance(posterior_power, float)
    assert posterior_power < 0.7
    assert estimate.posterior is not None
    right = estimate.value == truth
    before = temper(np.maximum(estimate.posterior.astype(np.float64), 1e-30), 1 / posterior_power).max(axis=1)
    assert calibration_error(estimate.confidence, right) < 0.9 * calibration_error(before, right)
    np.testing.assert_array_equal(estimate.value, estimate.posterior.argmax(axis=1))
    assert (estimate.low <= estimate.confidence).all()
    assert (estimate.confidence <= estimate.high).all()


def test_a_peer_and_a_paper_are_followed_to_the_letter() -> None:
    answers, _ = misleading(3, part=0.4)
    two = replace(answers, answer=answers.answer % 2, domain=Choices(("a", "b")))
    for fitted in (method("dawid-skene", prior="none"), method("private-dawid-skene")):
        assert fitted.fit(Reports.unprotected(two)).parameters["posterior_power"] == 1


@pytest.mark.parametrize("classes", ["weighed", "learned", "even"])
def test_where_skills_explain_the_answers_nothing_is_taken_back(classes: str) -> None:
    answers, _ = misleading(4, part=0.0)
    assert ChannelBP(classes=classes).fit(Reports.unprotected(answers)).provenance["posterior_power"] > 0.85  # type: ignore[operator, arg-type]


@pytest.mark.parametrize("noise", range(5))
def test_rounding_alone_makes_nobody_less_sure(noise: int) -> None:
    flat = -250.0 * (1 + np.random.default_rng(noise).normal(scale=1e-15, size=len(POWERS)))
    assert fit_posterior_power(flat) == 1.0
