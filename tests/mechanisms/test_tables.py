"""The shipped table mechanisms: the figures that SCIENCE promises, and what each does at its limits."""

from __future__ import annotations

import math
from math import comb

import numpy as np
import pytest

from crowdveil import Choices, Scale
from crowdveil.channel import Channel
from crowdveil.channel.encoding import Rotate
from crowdveil.errors import InputError, UnservableError
from crowdveil.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    OneLayer,
    OptimalScale,
    Piecewise,
    RandomizedResponse,
    SubsetSelection,
)
from crowdveil.mechanisms._integer_rounding import within_ratio
from crowdveil.mechanisms.subset_selection import subset_size

UNIT = Scale(-1, 1, "0.5")


def worst_variance(channel: Channel) -> float:
    return float(channel.scores(UNIT.numbers)[1].max())


def options(k: int) -> Choices:
    return Choices(tuple(f"o{i}" for i in range(k)))


@pytest.mark.parametrize(("epsilon", "limit"), [(1.0, 4.05), (4.0, 0.119)])
def test_optimal_scale_has_the_promised_worst_case_variance(epsilon: float, limit: float) -> None:
    channel = OptimalScale(epsilon=epsilon).channel(UNIT)
    assert worst_variance(channel) <= limit
    spelled = [float(output) for output in channel.outputs]
    assert np.array_equal(channel.scores(UNIT.numbers)[0], spelled)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_no_other_mechanism_is_less_noisy_than_optimal_scale(epsilon: float) -> None:
    best = worst_variance(OptimalScale(epsilon=epsilon).channel(UNIT))
    others = [
        RandomizedResponse(epsilon=epsilon),
        DiscreteLaplace(epsilon=epsilon),
        *(Piecewise(epsilon=epsilon, variant=variant) for variant in ("piecewise", "duchi", "hybrid")),
    ]
    assert best <= min(worst_variance(other.channel(UNIT)) for other in others) * (1 + 1e-3)


def test_published_worst_case_variances_at_epsilon_one() -> None:
    assert worst_variance(RandomizedResponse(epsilon=1).channel(UNIT)) == pytest.approx(8.60, abs=0.005)
    assert worst_variance(Piecewise(epsilon=1, variant="duchi").channel(UNIT)) == pytest.approx(4.68, abs=0.005)
    # Pieces of the published densities: at most the published variance of real-valued reports.
    assert worst_variance(Piecewise(epsilon=1, variant="hybrid").channel(UNIT)) <= 4.29
    s = math.exp(0.5)
    assert worst_variance(Piecewise(epsilon=1).channel(UNIT)) <= 1 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)


def test_optimal_scale_refuses_beyond_its_limits_and_is_built_once() -> None:
    with pytest.raises(UnservableError, match="serves at most 32 levels; got 33; use piecewise up to 64"):
        OptimalScale(epsilon=1).channel(Scale(1, 33))
    with pytest.raises(UnservableError, match="serves ε up to 8; got 9; use randomized-response"):
        OptimalScale(epsilon=9).channel(UNIT)
    assert OptimalScale(epsilon=1).channel(UNIT) == OptimalScale(epsilon=1).channel(UNIT)


def test_repair_keeps_the_ratio_and_hardly_moves_anything() -> None:
    rough = np.array([[0.7, 0.3, 0.0], [0.3, 0.7, 1e-9], [0.5, 0.4999999, 1e-7]])
    repaired = within_ratio(rough, 1.0)
    assert (repaired.max(axis=0) / repaired.min(axis=0) <= math.e * (1 + 1e-9)).all()
    assert np.allclose(repaired.sum(axis=1), 1)
    assert np.abs(repaired - rough).max() < 1e-6


def test_discrete_gaussian_of_loki_medium_level() -> None:
    promise = DiscreteGaussian(sigma=6).guarantee(Scale(1, 5))
    assert promise.epsilon == pytest.approx(2.35, abs=0.005)
    assert promise.rho == pytest.approx(0.222, abs=0.0005)
    assert promise.delta == 0


def test_sigma_is_in_the_units_of_the_scale() -> None:
    fine = DiscreteGaussian(sigma=0.6).channel(Scale(0, 1, "0.1"))
    coarse = DiscreteGaussian(sigma=6).channel(Scale(0, 10))
    assert np.array_equal(fine.weights, coarse.weights)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0, 20.0])
def test_a_little_less_noise_would_break_the_request(epsilon: float) -> None:
    served = DiscreteGaussian(epsilon=epsilon).channel(Scale(1, 5))
    assert epsilon * (1 - 1e-3) <= served.epsilon <= epsilon


def test_discrete_gaussian_refuses_what_needs_too_many_outputs() -> None:
    with pytest.raises(UnservableError, match="at most 4096 fit; use discrete-laplace"):
        DiscreteGaussian(epsilon=0.01).channel(Scale(1, 100))
    for bad in ({}, {"epsilon": 1, "sigma": 1}, {"sigma": 0}, {"sigma": math.inf}):
        with pytest.raises(InputError):
            DiscreteGaussian(**bad)


@pytest.mark.parametrize("k", [2, 3, 6, 10, 14, 20, 40, 91, 92, 100])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0])
def test_subset_size_is_the_best_of_those_that_fit(k: int, epsilon: float) -> None:
    ideal = k / (math.exp(epsilon) + 1)
    used = subset_size(k, epsilon)
    assert comb(k, used) <= 4096
    fits = max(size for size in range(1, k // 2 + 1) if comb(k, size) <= 4096)
    assert used == fits or abs(used - ideal) < 1
    assert used <= math.ceil(ideal)


def test_subsets_of_one_are_randomised_response() -> None:
    assert SubsetSelection(epsilon=3).channel(options(5)) == RandomizedResponse(epsilon=3).channel(options(5))


def test_a_limited_subset_size_is_said() -> None:
    assert "instead of" in SubsetSelection(epsilon=0.1).guarantee(options(20)).note
    assert SubsetSelection(epsilon=0.1).guarantee(options(8)).note == ""


def test_subset_selection_is_never_worse_than_randomised_response_for_frequencies() -> None:
    for k in (4, 6, 10):
        for epsilon in (0.2, 1.0, 2.0):
            noise = []
            for kind in (SubsetSelection, RandomizedResponse):
                channel = kind(epsilon=epsilon).channel(options(k))
                second = channel.table @ channel.votes**2
                noise.append(second[1, 0])  # of an option that was not the answer
            assert noise[0] <= noise[1] * (1 + 1e-6)


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("flip", [0.05, 0.25, 0.4])
def test_one_layer_has_the_formulas_epsilon(k: int, flip: float) -> None:
    channel = OneLayer(flip=flip).channel(options(k))
    assert isinstance(channel.form, Rotate)
    assert channel.epsilon == pytest.approx(math.log((1 - flip) * (k - 1) / flip), rel=1e-9)
    assert channel.epsilon <= math.log((1 - flip) * (k - 1) / flip) * (1 + 1e-15)
    assert OneLayer(epsilon=1).channel(options(k)) == RandomizedResponse(epsilon=1).channel(options(k))


def test_one_layer_refuses_what_would_lie_more_often_than_not() -> None:
    with pytest.raises(UnservableError, match=r"flip must be at most 0\.5 with 2 symbols; got 0\.6"):
        OneLayer(flip=0.6).channel(options(2))
    assert OneLayer(flip=0.6).channel(options(3)).epsilon > 0
    for bad in ({}, {"flip": 0}, {"flip": 1}, {"epsilon": 1, "flip": 0.1}):
        with pytest.raises(InputError):
            OneLayer(**bad)


def test_piecewise_refuses_what_its_numbers_cannot_tell_apart() -> None:
    """At ε = 100 the pieces around the levels were lost in rounding, and reports told nothing."""
    for variant in ("piecewise", "hybrid"):
        assert worst_variance(Piecewise(epsilon=50, variant=variant).channel(Scale(0, 4))) < 1e-9
        with pytest.raises(UnservableError, match="serves ε up to 50; got 51; use randomized-response"):
            Piecewise(epsilon=51, variant=variant).channel(Scale(0, 4))


@pytest.mark.parametrize("kind", [Piecewise, OptimalScale])
@pytest.mark.parametrize("epsilon", [1e-13, 1e-100])
def test_an_epsilon_next_to_nothing_is_refused_in_a_sentence(
    kind: type[Piecewise | OptimalScale], epsilon: float
) -> None:
    with pytest.raises(UnservableError, match=r"cannot keep ε 1e-.* with 5 inputs; use randomized-response"):
        kind(epsilon=epsilon).channel(Scale(0, 4))


def test_piecewise_refuses_an_unknown_variant_and_too_many_levels() -> None:
    with pytest.raises(InputError, match="variant must be piecewise, duchi or hybrid; got 'other'"):
        Piecewise(epsilon=1, variant="other")
    with pytest.raises(UnservableError, match="serves at most 64 inputs; got 65; use discrete-laplace"):
        Piecewise(epsilon=1).channel(Scale(1, 65))


def test_the_row_of_the_empty_answer_is_the_mean_of_the_levels() -> None:
    for kind in (DiscreteLaplace, OptimalScale, Piecewise, DiscreteGaussian):
        table = kind(epsilon=1, protect_participation=True).channel(Scale(1, 5)).table
        assert np.allclose(table[-1], table[:-1].mean(axis=0), atol=1e-15)
