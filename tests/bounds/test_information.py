"""The information floor: the figures of the design, and bounds that actual channels cannot pass."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from crowdveil import Choices, Scale
from crowdveil.bounds.information import (
    answer_law,
    channel_information,
    fano_floor,
    least_error,
    scale_floor,
    smallest_deviation,
    staircase_information,
    with_empty,
)
from crowdveil.channel import identity
from crowdveil.mechanisms import mechanism


@pytest.mark.parametrize(
    ("sigmas", "epsilon", "expected"),
    [((1, 5), 0.1, 7.8), ((1, 5), 1, 0.72), ((1, 5), 3, 0.19), ((1,), 0.1, 5.6), ((1,), 1, 0.52), ((1,), 3, 0.14)],
)
def test_the_floor_of_the_papers_synthetic_crowd(sigmas: tuple[float, ...], epsilon: float, expected: float) -> None:
    found = smallest_deviation(Scale(0, 9), epsilon, n_workers=2000, sigmas=sigmas, share=0.1)
    assert found == pytest.approx(expected, rel=0.03)


def test_the_slope_of_an_answer_law_is_its_derivative() -> None:
    scale = Scale(0, 4)
    p, slope = answer_law(1.3, 0.8, scale)
    ahead, behind = answer_law(1.3 + 1e-5, 0.8, scale)[0], answer_law(1.3 - 1e-5, 0.8, scale)[0]
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-5, atol=1e-6)
    assert p.sum() == pytest.approx(1)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("truth", [0.1, 2.2])
def test_runs_of_symbols_are_as_good_as_all_sets(epsilon: float, truth: float) -> None:
    p, slope = with_empty(answer_law(truth, 0.9, Scale(0, 4)), 0.3)
    sets = np.array(list(itertools.product([0.0, 1.0], repeat=len(p)))[1:-1])
    gain = math.expm1(epsilon)
    value = (gain * sets @ slope) ** 2 / (1 + gain * sets @ p)
    best = -linprog(-value, A_eq=(1 + gain * sets).T, b_eq=np.ones(len(p))).fun
    assert staircase_information(p, slope, epsilon) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("name", ["randomized-response", "subset-selection", "discrete-laplace"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_no_mechanism_passes_the_floor(name: str, epsilon: float) -> None:
    scale = Scale(0, 5)
    chosen = mechanism(name, epsilon=epsilon, protect_participation=True)
    law = with_empty(answer_law(2.4, 1.0, scale), 0.2)
    found = channel_information(chosen.channel(scale), *law)
    assert 0 < found <= staircase_information(*law, epsilon) * (1 + 1e-9)


def test_without_privacy_the_channel_passes_everything_on() -> None:
    scale = Scale(0, 5)
    p, slope = answer_law(2.4, 1.0, scale)
    assert channel_information(identity(scale), p, slope) == pytest.approx((slope**2 / p).sum())


def test_fano_is_exact_at_both_ends() -> None:
    even = np.full(4, 0.25)
    assert least_error(even, 0.0) == pytest.approx(0.75, abs=1e-6)
    assert least_error(even, math.log(4)) == 0.0


def test_one_private_report_cannot_beat_the_best_guess_by_more_than_fano_allows() -> None:
    domain, epsilon = Choices(("no", "yes")), 1.0
    channel = mechanism("randomized-response", epsilon=epsilon).channel(domain)
    floor = fano_floor((channel,), np.ones(1), np.array([0.5, 0.5]))
    # The best guess from one report is that report, wrong with probability 1 / (1 + e^ε).
    assert floor.smallest_error <= 1 / (1 + math.exp(epsilon)) + 1e-9
    assert floor.informative
    assert floor.prior_error == 0.5


@pytest.mark.parametrize("classes", [[0.5, 0.5], [0.9, 0.1], [0.4, 0.3, 0.2, 0.1]], ids=str)
def test_each_question_is_told_of_by_the_rule_that_judges_the_usual_one(classes: list[float]) -> None:
    domain = Choices(tuple("abcd"[: len(classes)]))
    channels = [mechanism("randomized-response", epsilon=epsilon).channel(domain) for epsilon in (0.05, 0.4)]
    counts = np.array([[0.0, 1.0, 5.0, 30.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0, 40.0]])
    floors = [fano_floor(channels, each, np.array(classes)) for each in counts.T]
    assert floors[0].told(counts).tolist() == [floor.informative for floor in floors]
    assert {floor.informative for floor in floors} == {True, False}


@pytest.mark.parametrize("known", [0.0, 1 / 0.9**2])
def test_each_number_is_told_of_by_the_rule_that_judges_the_usual_one(known: float) -> None:
    scale, crowd = Scale(1, 5), {"sigmas": np.array([1.0]), "weights": np.ones(1), "share": 1.0, "known": known}
    channels = [mechanism("randomized-response", epsilon=epsilon).channel(scale) for epsilon in (0.5, 2.0)]
    counts = np.array([[0.0, 1.0, 9.0, 900.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0, 40.0]])
    floors = [scale_floor(channels, each, scale, centre=3.0, spread=0.9, **crowd) for each in counts.T]
    assert floors[0].told(counts).tolist() == [floor.informative for floor in floors]
    assert {floor.informative for floor in floors} == {True, False}


def test_what_is_known_of_the_truths_adds_to_what_reports_tell() -> None:
    """One exact report of a normal truth with errors as large as its spread halves the variance."""
    scale, crowd = Scale(-500, 500, "0.1"), {"sigmas": np.array([10.0]), "weights": np.ones(1), "share": 1.0}
    floor = scale_floor([identity(scale)], np.ones(1), scale, centre=0.0, spread=10.0, known=1 / 100, **crowd)
    assert floor.smallest_error == pytest.approx(10 / math.sqrt(2), rel=1e-3)
    assert floor.informative
    assert not scale_floor([identity(scale)], np.ones(1), scale, centre=0.0, spread=9.9, **crowd).informative
