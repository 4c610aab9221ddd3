"""Intervals of numbers: what rounding adds, and the ends of a ratio's interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri, stdtrit

from crowdveil import Answers, Reports, Scale
from crowdveil.entropy import entropy_from
from crowdveil.inference import Mean, Median, PopulationMean, WeightedMean
from crowdveil.inference.observations.numeric import common_freedom, pooled_variance, tails_at, variance_statistics
from crowdveil.inference.priors.truth import TruthLaw
from crowdveil.inference.priors.truth_grid import finest, interpolate, quantiles, truth_grid
from crowdveil.inference.uncertainty.censoring import mean_histogram, spread_of_errors
from crowdveil.inference.uncertainty.fieller import Ratio
from crowdveil.inference.uncertainty.means import (
    remove_rounding,
    rounded_reach,
    rounding,
    rounding_of_medians,
    rounding_of_weighted,
    with_interval,
)
from crowdveil.mechanisms import mechanism

LEVELS = Scale(0, 4)


def test_without_rounding_the_reach_stays_and_without_noise_it_is_that_of_an_even_law() -> None:
    np.testing.assert_allclose(rounded_reach(np.array([0.0, 1.0, 7.0]), 0.0), [0, 1, 7])
    assert rounded_reach(np.array([0.0]), 1 / 12)[0] == pytest.approx(0.475)


@pytest.mark.parametrize(("spread", "bound"), [(0.1, 0.5), (0.5, 0.5), (2.0, 0.5)])
def test_the_reach_holds_95_in_100_of_normal_and_even_errors_together(spread: float, bound: float) -> None:
    rng = np.random.default_rng(3)
    error = np.abs(spread * rng.standard_normal(1_000_000) + rng.uniform(-bound, bound, 1_000_000))
    reach = rounded_reach(np.array([spread * ndtri(0.975)]), bound**2 / 3)[0]
    # Five standard deviations of a share of .95 in a million draws are .0011.
    assert np.mean(error <= reach) == pytest.approx(0.95, abs=0.0011)


def test_rounding_matters_to_those_who_agree_and_not_to_those_who_do_not() -> None:
    assert rounding(LEVELS, np.array([0.0]))[0] == pytest.approx(1 / 12, rel=0.08)
    assert rounding(LEVELS, np.array([1.0]))[0] < 1e-12
    assert rounding_of_medians(LEVELS, 0.0) == pytest.approx(1 / 12, rel=0.01)
    assert rounding_of_medians(LEVELS, 1.9) < 1e-3


@pytest.mark.parametrize("spread", [0.1, 0.2, 0.35])
def test_the_error_of_rounding_is_that_of_the_mean_of_rounded_answers(spread: float) -> None:
    """By summing the levels that truths between two of them are rounded to; levels are half apart."""
    truth = (np.arange(512) + 0.5) / 512
    levels = np.arange(-4, 6)
    law = np.diff(ndtr((levels[:, None] - 0.5 - truth) / spread), axis=0)
    error = levels[:-1] @ law - truth
    found = rounding(Scale(0, 4, 0.5), np.array([spread**2 + 1 / 12]) / 4)
    assert found[0] == pytest.approx(np.square(error).mean() / 4, rel=1e-4)


def test_waves_of_rounding_add_by_the_weight_of_the_answers() -> None:
    """Three quarters of the weight agree within a level, the rest answer anything; a third question has no answers."""
    variance, weight = np.array([1 / 12, 9.0, 1 / 12]), np.array([3.0, 1.0, 2.0])
    found = rounding_of_weighted(LEVELS, variance, weight, np.array([0, 0, 1]), 3)
    assert found == pytest.approx(rounding(LEVELS, np.array([1 / 12])) * [0.75**2, 1, 0])
    assert not rounding_of_weighted(LEVELS, variance[1:2], weight[1:2], np.array([0]), 1).any()


def test_an_interval_stands_around_the_number_as_it_came() -> None:
    raw, one = np.array([2.0, -0.5, np.nan]), np.ones(3)
    found = with_interval(raw, one / 4, one * [9, 0, 9], np.array([True, True, False]), LEVELS)
    nine, least = stdtrit([9, 1], 0.975) / 2
    np.testing.assert_allclose(found["low"], [2 - nine, 0, 0])
    np.testing.assert_allclose(found["high"], [2 + nine, min(least - 0.5, 4), 4])
    np.testing.assert_allclose(found["value"], [2, 0, np.nan])
    np.testing.assert_allclose(found["confidence"], [0.95, 0.95, 0])
    narrow = with_interval(raw[1:2], one[:1] / 4, one[:1] * 99, np.array([True]), LEVELS)
    assert narrow["high"][0] == pytest.approx(stdtrit(99, 0.975) / 2 - 0.5)


def test_a_weighted_mean_of_one_question_is_a_level_and_its_interval_holds_what_rounds_to_it() -> None:
    """One answer each: the limit is the median, a level. Of so many answers .57 of the truths were held."""
    rng = np.random.default_rng(22)
    held = []
    for truth in rng.uniform(0, 4, 150):
        answers = np.clip(np.rint(rng.normal(truth, 0.7, 50)), 0, 4)
        rows = [(worker, "q", int(answer)) for worker, answer in enumerate(answers)]
        found = WeightedMean().fit(Reports.unprotected(Answers.from_rows(rows, LEVELS)))
        held.append(found.low[0] <= truth <= found.high[0])
    # Over another 300 such questions .92 were held; five standard errors of 150 are .11.
    assert np.mean(held) >= 0.81


@pytest.mark.parametrize("distance", [0.3, 0.7, 3.0])
def test_the_rounding_of_two_levels_is_taken_out_of_their_distance(distance: float) -> None:
    left = np.random.default_rng(4).uniform(0, 1, 100_000)
    seen = np.square(np.rint(left + distance) - np.rint(left)).mean()
    found = remove_rounding(LEVELS, np.array([seen]), np.ones(1))[0]
    assert found == pytest.approx(distance**2, abs=0.02 if distance < 0.79 else 0.2)


def test_rounding_is_taken_out_of_wide_distances_on_average() -> None:
    # A distance of 2 + f is seen as 2 or, with probability f, as 3.
    part = (np.arange(1000) + 0.5) / 1000
    assert remove_rounding(LEVELS, 4 + 5 * part, 1.0).mean() == pytest.approx(np.square(2 + part).mean(), rel=1e-6)


def test_a_ratio_whose_mass_is_known_has_students_interval() -> None:
    ratio = Ratio(np.array([3.0]), np.array([10.0]), np.array([[4.0], [0.0], [0.0]]))
    found = ratio.columns(np.array([2.3]), np.array([9.0]), np.array([True]), LEVELS)
    reach = stdtrit(9, 0.975) * 2 / 10
    assert (found["low"][0], found["high"][0]) == (pytest.approx(2.3 - reach), pytest.approx(2.3 + reach))


def test_a_ratio_whose_mass_may_be_nothing_can_be_anything() -> None:
    ratio = Ratio(np.array([0.5]), np.array([1.0]), np.array([[4.0], [0.0], [4.0]]))
    found = ratio.columns(np.array([2.5]), np.array([99.0]), np.array([True]), LEVELS)
    assert (found["low"][0], found["high"][0]) == (0.0, 4.0)


def test_outliers_do_not_widen_the_interval_of_a_median() -> None:
    rng = np.random.default_rng(5)
    answers = [np.where(rng.random(20) < 0.1, 100, rng.normal(50, 2, 20).round()).astype(int) for _ in range(50)]
    rows = [(worker, f"q{n}", int(answer)) for n, each in enumerate(answers) for worker, answer in enumerate(each)]
    reports = Reports.unprotected(Answers.from_rows(rows, Scale(0, 100)))
    widths = [np.mean(kind().fit(reports).high - kind().fit(reports).low) for kind in (Median, Mean)]
    assert widths[0] < 0.3 * widths[1]


def test_one_report_or_none_is_no_trouble_where_participation_is_protected() -> None:

    hidden = mechanism("randomized-response", epsilon=1, protect_participation=True)
    reports = hidden.randomize(Answers.from_rows([("ada", "q1", 1)], Scale(1, 5)), entropy_from(1))
    for kind in (Mean, PopulationMean):
        found = kind().fit(reports)
        assert np.isfinite([found.low[0], found.value[0], found.high[0]]).all()


def test_hidden_answers_that_are_all_alike_and_nearly_without_noise_do_not_vary() -> None:
    hidden = mechanism("subset-selection", epsilon=60, protect_participation=True)
    rows = [("ada", "p", 0), ("ada", "q", 0), ("bob", "q", 0), ("cy", "q", 0)]
    reports = hidden.randomize(Answers.from_rows(rows, Scale(0, 1)), entropy_from(1))
    # Dividing by a variance of nothing would warn, and warnings are errors here.
    found = PopulationMean().fit(reports)
    assert found.value[0] == 0
    assert (found.low <= found.high).all()


@pytest.mark.parametrize("spread", [0.7, 1.5, 2.5])
def test_the_spread_of_errors_is_found_although_the_scale_cuts_them(spread: float) -> None:
    rng = np.random.default_rng(8)
    truth = rng.uniform(0, 6, 4000)
    answers = np.clip(np.rint(truth[:, None] + spread * rng.standard_normal((4000, 10))), 0, 6)
    mean, squares = answers.mean(axis=1), ((answers - answers.mean(axis=1, keepdims=True)) ** 2).sum()
    seen = mean_histogram(mean, np.full(4000, 9.0), 0.0, Scale(0, 6))
    assert spread_of_errors(seen["means"], squares, Scale(0, 6)) == pytest.approx(spread, rel=0.06)
    assert np.sqrt(squares / 36000) < 0.95 * spread or spread < 1


@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_variances_that_rare_lies_tear_apart_do_not_count_as_different(epsilon: float) -> None:
    rng = np.random.default_rng(9)
    rows = [
        (worker, q, int(a)) for q in range(600) for worker, a in enumerate(np.rint(rng.normal(4, 0.8, 6)).clip(0, 9))
    ]
    reports = mechanism("randomized-response", epsilon=epsilon).randomize(
        Answers.from_rows(rows, Scale(0, 9)), entropy_from(9)
    )
    values = reports.channels[0].scores(reports.domain.numbers)[0][reports.report].reshape(600, 6)
    squares, freedom = values.var(axis=1) * 6, np.full(600, 5.0)
    tails = tails_at(np.full(600, 4.0), np.full((1, 600), 6.0), reports.channels, reports.domain)
    plain, told = variance_statistics(squares, freedom), variance_statistics(squares, freedom, tails)
    crowd = pooled_variance(squares, freedom, reports.domain)
    assert common_freedom(told, crowd) > 30
    assert epsilon < 4 or common_freedom(plain, crowd) < 10


def test_where_reports_tell_nothing_the_law_of_the_truths_stays_as_it_was() -> None:
    grid = truth_grid(Scale(0, 6))
    law = TruthLaw(2.0, 3.0, 0.6, 0.3)
    stays = law.refit(grid, 1e9 * law.weights(grid), 0.5)
    np.testing.assert_allclose(stays.to_array(), law.to_array(), rtol=1e-5)


def test_truths_that_are_even_on_the_scale_have_an_even_law_and_normal_ones_a_normal_law() -> None:
    grid = truth_grid(Scale(0, 9))
    for wanted, truth in ((0.0, TruthLaw(4.5, 6.0, 0.0, 0.2)), (1.0, TruthLaw(0.0, 1.5, 1.0, 0.2))):
        law = TruthLaw.first(grid)
        for _ in range(100):
            law = law.refit(grid, 1e5 * truth.weights(grid), 0.5)
        assert law.normal == pytest.approx(wanted, abs=0.1)
        np.testing.assert_allclose(law.weights(grid), truth.weights(grid), atol=0.002)


def test_a_prior_that_jumps_where_the_scale_ends_does_not_make_posteriors_swing() -> None:
    grid = truth_grid(Scale(0, 6))
    prior = TruthLaw(0.0, 0.02, 0.8, 0.2).parts(grid)
    likelihood = -((grid.points - 0.2) ** 2)[None]
    median, low, high = (each[0] for each in quantiles(grid, [likelihood], [prior], (0.5, 0.025, 0.975)))
    assert -0.1 < median < 0.1
    assert -0.4 < low < high < 2


@pytest.mark.parametrize("top", [1, 4, 9, 20, 100])
def test_a_finer_grid_holds_the_levels_and_gives_the_law_the_same_mean(top: int) -> None:
    grid = truth_grid(Scale(0, top))
    fine, law = finest(grid), TruthLaw(0.4 * top, (0.2 * top) ** 2, 0.7, 0.3)
    for each in (grid, fine):
        assert (np.diff(each.points) > 0).all()
        np.testing.assert_allclose(each.points[each.levels], np.arange(top + 1) if top <= 20 else [], atol=1e-12)
        assert law.weights(each).sum() == pytest.approx(1)
    means = [law.weights(each) @ each.points for each in (grid, fine)]
    assert means[0] == pytest.approx(means[1], abs=0.01 * top)


def test_between_points_a_parabola_is_met_and_next_to_a_cliff_nothing_swings() -> None:
    points = np.array([0.0, 0.1, 0.3, 0.7, 1.0, 1.6])
    places = np.linspace(0.1, 1.0, 50)[None]
    np.testing.assert_allclose(interpolate(points, -((points - 0.45) ** 2)[None], places), -((places - 0.45) ** 2))
    cliff = interpolate(points, np.array([[0.0, 0.0, 0.0, -200.0, -200.0, -200.0]]), places)
    assert -200 <= cliff.min() <= cliff.max() <= 0


def test_exact_workers_leave_open_whether_truths_are_levels() -> None:
    """The part that lies between levels times the spread stays: that is how many questions divide them."""
    law, many = TruthLaw(2.0, 1.0, 0.8, 0.85), 10**9
    other, factor = law.unsure(1.0, many)
    assert other.levels == 0
    assert factor == pytest.approx(0.15)
    half, factor = law.unsure(0.5, many)
    assert (1 - half.levels) * factor == pytest.approx(1 - law.levels)
    assert law.unsure(0.0, many)[1] == pytest.approx(1)
    # Of 100 questions 90 on levels make (90 + .2 · 25) / 125 with the pseudo-questions, which are taken out again.
    assert replace(law, levels=0.76).unsure(1.0, 100)[1] == pytest.approx(0.1)
