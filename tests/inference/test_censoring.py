"""What the ends of a scale do to means, where it can be computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from crowdveil import Scale
from crowdveil.channel import Channel
from crowdveil.channel.encoding import Table
from crowdveil.inference.uncertainty.censoring import (
    hidden_means_seen,
    mean_histogram,
    reaching_out,
    spread_of_errors,
    squares_left,
)
from crowdveil.inference.uncertainty.fieller import Sums


def test_means_are_seen_where_they_lie_on_the_scale() -> None:
    seen = mean_histogram(np.array([1.0, 5.0, 3.0]), np.array([1.0, 2.0, 4.0]), 0.5, Scale(1, 5))
    assert seen["means"].shape == (32,)
    assert {place: seen["means"][place] for place in np.flatnonzero(seen["means"])} == {0: 1, 31: 2, 16: 4}
    assert seen["noise"] == 3.5


def test_the_noise_of_an_answer_and_that_of_silence_are_told_apart() -> None:
    domain = Scale(0, 2)
    # Most tables treat silence like an answer, so that both have the same noise; this one does not.
    weights = np.array([[7, 3, 3, 3], [3, 7, 3, 3], [3, 3, 7, 3], [1, 2, 3, 10]], dtype=np.uint64) << np.uint64(28)
    symbols = (*domain.symbols, None)
    channel = Channel(symbols, symbols, 32, "prefix", Table(weights))
    # Three reports whose mean is the middle, 1: two degrees of freedom.
    found = Sums(np.array([3.0]), np.array([0.0]), np.array([2.0]), np.array([[6.0], [0.5], [2.0]]))
    seen = hidden_means_seen(found, np.array([[3.0]]), (channel,), domain)
    error = channel.scores(domain.numbers)[0] - channel.scores(np.ones(3))[0]
    assert seen["noise"] == pytest.approx(2 * channel.table[1] @ error**2)
    assert seen["silence"] == pytest.approx(2 * channel.table[3] @ error**2)
    assert seen["silence"] != pytest.approx(seen["noise"], rel=0.1)
    assert seen["around"] == 6


def test_squares_are_those_of_the_answers_given() -> None:
    noise, silence = np.array(6.0), np.array(2.0)
    assert squares_left({"noise": noise}, 20.0) == 14
    # A quarter are answers: of the squares 20, noise makes 6 / 4 + 2 · 3 / 4 = 3.
    assert squares_left({"noise": noise, "silence": silence}, 20.0, 0.25) == 68


def test_a_spread_is_at_least_a_third_of_a_level_and_at_most_half_the_range() -> None:
    means = np.ones(32)
    assert spread_of_errors(means, 0.0, Scale(1, 7)) == pytest.approx(1 / 3)
    assert spread_of_errors(means, 1e9, Scale(1, 7)) == pytest.approx(3)


def test_a_spread_is_that_of_the_errors_that_leave_such_squares() -> None:
    # Of a truth in the middle of three levels, Φ(−.5/σ) go to either side.
    means = np.zeros(32)
    means[15:17] = 1
    assert spread_of_errors(means, 2 * 2 * ndtr(-0.5 / 0.8), Scale(1, 3)) == pytest.approx(0.8, rel=0.01)


def test_an_interval_reaches_out_to_the_truths_whose_means_it_holds() -> None:
    # Of two levels, the upper is answered with probability Φ((truth − ½)/σ), which is the mean.
    ends = {"low": np.array([1 + ndtr(-0.2 / 0.5), 1 + ndtr(-0.5 / 0.5)]), "high": np.array([1 + ndtr(0.4), 1.9])}
    found = reaching_out(ends | {"value": np.array([1.5, 1.5])}, 0.5, Scale(1, 2))
    np.testing.assert_allclose(found["low"], [1.3, 1.0], atol=1e-4)
    np.testing.assert_allclose(found["high"], [1.7, 2.0], atol=1e-4)


def test_an_interval_is_never_drawn_in() -> None:
    low = np.linspace(2, 4, 99)
    found = reaching_out({"low": low, "high": low + 0.01}, 0.34, Scale(0, 6))
    assert (found["low"] <= low).all()
    assert (found["high"] >= low + 0.01).all()
    # Rounding alone would move a mean to either side.
    assert (found["low"] < low - 0.01).any()
    assert (found["high"] > low + 0.02).any()
