"""Laplace and Gaussian noise on numbers: the papers' claims beside what is true, and the noise that was promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import kstest, laplace, norm

from crowdveil import Answers, Choices, Scale, entropy_from
from crowdveil.errors import InputError, UnservableError
from crowdveil.mechanisms import DenseFactorization, Gaussian, Laplace, MatrixFactorization
from crowdveil.mechanisms.gaussian import delta_at, epsilon_at

STARS = Scale(1, 5)


def crowd_of(n: int, level: int | None = 3) -> Answers:
    return Answers.from_rows([(i, 0, level) for i in range(n)], STARS)


def test_laplace_noise_is_laplace_noise() -> None:
    reports = Laplace(epsilon=2).randomize(crowd_of(20_000), entropy_from(1))
    assert kstest(reports.number - 3, laplace(scale=2).cdf).statistic < 2.7 / math.sqrt(20_000)
    assert reports.channels[0].variance == 8


def test_gaussian_noise_is_gaussian_noise() -> None:
    reports = Gaussian(level="medium").randomize(crowd_of(20_000), entropy_from(1))
    assert kstest(reports.number - 3, norm(scale=6).cdf).statistic < 2.7 / math.sqrt(20_000)
    assert reports.channels[0].variance == 36


@pytest.mark.parametrize(
    ("scale", "real"), [(Scale(0, 100, 50), 100 / 3), (Scale(0, 9), 0.9), (Scale(0, 1, "0.25"), 0.2)]
)
def test_the_papers_scale_is_the_count_of_levels_and_its_real_loss_the_range_over_it(scale: Scale, real: float) -> None:
    assert Laplace(epsilon=1, paper_scale=True).guarantee(scale).epsilon == pytest.approx(real)
    assert Laplace(epsilon=1).guarantee(scale).epsilon == pytest.approx(1)


def test_lokis_levels_cost_more_than_its_formula_prints() -> None:
    real = [Gaussian(level=level).guarantee(STARS).epsilon for level in ("low", "medium", "high")]
    assert np.allclose(real, [3.42, 1.35, 0.53], atol=0.005)
    # The levels keep their meaning on a scale of another range.
    assert Gaussian(level="high").guarantee(Scale(0, 100)).epsilon == pytest.approx(real[2])


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_delta_is_the_hockey_stick_of_two_normals(sigma: float, epsilon: float) -> None:
    grid = np.linspace(-20 * sigma - 2, 20 * sigma + 3, 400_001)
    stick = np.maximum(norm.pdf(grid, 1, sigma) - math.exp(epsilon) * norm.pdf(grid, 0, sigma), 0)
    assert delta_at(sigma, epsilon) == pytest.approx(trapezoid(stick, x=grid), abs=1e-8)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.01, 1e-6])
def test_the_noise_for_an_epsilon_keeps_it(epsilon: float, delta: float) -> None:
    crowd = Gaussian(epsilon=epsilon, delta=delta)
    promise, sigma = crowd.guarantee(STARS), crowd.noise_sigma(STARS) / STARS.range
    assert (promise.epsilon, promise.delta) == (epsilon, delta)
    assert delta_at(sigma, epsilon) <= delta < delta_at(sigma * 0.999, epsilon)
    assert epsilon_at(sigma, delta) == pytest.approx(epsilon, rel=1e-9)
    assert epsilon_at(1e6, delta) == 0


def test_empty_answers_are_filled_as_asked_where_participation_is_hidden() -> None:
    answers = Answers.from_rows([(i, 0, 3 if i == 0 else None) for i in range(1000)], STARS)
    quiet = {"epsilon": 1e12, "protect_participation": True}
    assert np.allclose(Laplace(**quiet).randomize(answers, entropy_from(1)).number, 3)
    filled = Laplace(fill=5, **quiet).randomize(answers, entropy_from(1)).number
    assert np.allclose(filled[1:], 5)
    drawn = Laplace(fill="random", **quiet).randomize(answers, entropy_from(1)).number
    assert set(drawn.round().astype(int)) == {1, 2, 3, 4, 5}
    assert len(Laplace(epsilon=1).randomize(answers, entropy_from(1))) == 1


def test_what_makes_no_sense_is_refused() -> None:
    for bad in ({}, {"epsilon": 1, "sigma": 2}, {"level": "huge"}, {"sigma": -1}, {"epsilon": 1, "delta": 0}):
        with pytest.raises(InputError):
            Gaussian(**bad)
    with pytest.raises(UnservableError, match="use mechanism none"):
        Gaussian(level="none")
    with pytest.raises(InputError, match="fill must be middle, random or a number within the levels; got 7"):
        Laplace(epsilon=1, fill=7, protect_participation=True).randomize(crowd_of(1), entropy_from(1))
    for kind in (Laplace, Gaussian, MatrixFactorization, DenseFactorization):
        with pytest.raises(UnservableError, match="numbers; got options that are none; use randomized"):
            kind(epsilon=1).guarantee(Choices(("no", "yes")))
