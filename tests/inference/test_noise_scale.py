"""The law of workers' spreads: the crowd's typical worker until answers say more, and no surer than they are many."""

from __future__ import annotations

import numpy as np
import pytest

from crowdveil import Answers, Reports, Scale
from crowdveil.inference import ChannelEM
from crowdveil.inference.priors.noise_scale import factors, first_spreads, fitted_spreads

SPREADS = np.geomspace(0.15, 9.0, 10)


def test_many_workers_have_the_law_that_they_show() -> None:
    shown = np.array([3, 0, 0, 0, 0, 5, 0, 0, 0, 0, 2]) / 10
    np.testing.assert_allclose(fitted_spreads(1e6 * shown, SPREADS, 20.0), shown, atol=1e-4)


def test_few_workers_are_like_the_typical_one() -> None:
    """Beliefs that are as even as the first law show nothing; these workers are held to be alike all the same."""
    law = fitted_spreads(3 * first_spreads(10), SPREADS, 20.0)
    assert law.sum() == pytest.approx(1)
    assert law[3:7].sum() > 0.7
    assert law.min() > 0.001


def test_no_workers_at_all_are_no_trouble() -> None:
    assert np.isfinite(fitted_spreads(np.zeros(11), SPREADS, 0.0)).all()


def test_the_typical_spread_of_many_answers_is_known_and_of_few_it_is_not() -> None:
    assert factors(2000, 200) == [(1.0, 1.0)]
    alone, among = factors(10, 1), factors(100, 10)
    assert alone[0][0] == among[0][0] == 1.0
    # Nothing but its own answers tells the spread of a question alone.
    assert len({weight for _, weight in alone}) == 1
    assert max(factor for factor, _ in among) < max(factor for factor, _ in alone)
    mean = sum(weight * np.log(factor) ** 2 for factor, weight in among)
    assert mean == pytest.approx(1 / (2 * 90 * 0.9), rel=0.4)


def test_the_interval_of_a_question_alone_holds_its_truth() -> None:
    """Ten answers that err by two levels; with the workers' spreads as free as they were, .82 were held."""
    rng = np.random.default_rng(20)
    held, n_tables = 0, 60
    for truth in rng.uniform(0, 9, n_tables):
        answers = np.clip(np.rint(rng.normal(truth, 2.0, 10)), 0, 9)
        rows = [(worker, "q", int(answer)) for worker, answer in enumerate(answers)]
        estimate = ChannelEM().fit(Reports.unprotected(Answers.from_rows(rows, Scale(0, 9))))
        held += bool(estimate.low[0] <= truth <= estimate.high[0])
    assert 0.87 <= held / n_tables <= 1


def test_exact_workers_on_a_long_scale_leave_open_what_rounds_to_their_level() -> None:
    """A twentieth of a level on 26 levels: a least spread of half a level held .5 of these truths."""
    rng = np.random.default_rng(21)
    truth = rng.uniform(0, 25, 150)
    answers = np.clip(np.rint(rng.normal(truth[:, None], 0.05, (150, 30))), 0, 25).astype(np.int32)
    question, worker = (each.ravel() for each in np.indices(answers.shape))
    table = Answers(worker, question, answers.ravel(), np.arange(30), np.arange(150), Scale(0, 25))
    estimate = ChannelEM().fit(Reports.unprotected(table))
    held = np.mean((estimate.low <= truth) & (truth <= estimate.high))
    # Over eight other seeds .925 were held; five standard errors of 150 truths are .11.
    assert held >= 0.82
    assert np.abs(estimate.value - truth).mean() < 0.25


@pytest.mark.parametrize(("spread", "warned"), [(0.05, True), (3.0, False)])
def test_workers_who_are_more_exact_than_can_be_told_are_warned_of(spread: float, warned: bool) -> None:
    rng = np.random.default_rng(23)
    truth = rng.uniform(0, 39, 40)
    answers = np.clip(np.rint(rng.normal(truth[:, None], spread, (40, 10))), 0, 39).astype(int)
    rows = [(worker, n, int(each[worker])) for n, each in enumerate(answers) for worker in range(10)]
    estimate = ChannelEM().fit(Reports.unprotected(Answers.from_rows(rows, Scale(0, 39))))
    assert any("told apart" in each for each in estimate.warnings) == warned
