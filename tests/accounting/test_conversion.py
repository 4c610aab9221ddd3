"""ρ and (ε, δ) convert into each other in the direction that never understates."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.accounting.conversion import delta_from_rho, epsilon_at_order, epsilon_from_rho, rho_max
from crowdveil.accounting.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    kandappu_2015_formula_4_2,
    kandappu_2015_formula_4_3,
)
from crowdveil.errors import InputError

budgets = st.tuples(st.floats(0.01, 100), st.floats(-12, -1).map(lambda power: 10**power))


@given(budgets)
def test_the_largest_rho_stays_within_the_budget_and_uses_it_up(budget: tuple[float, float]) -> None:
    epsilon, delta = budget
    rho = rho_max(epsilon, delta)
    assert epsilon_from_rho(rho, delta) == pytest.approx(epsilon, rel=1e-9)
    assert delta_from_rho(rho, epsilon) <= delta * (1 + 1e-6)


@given(budgets, st.floats(1.01, 1e4))
def test_no_single_order_beats_the_optimum(budget: tuple[float, float], alpha: float) -> None:
    rho, delta = budget
    assert epsilon_from_rho(rho, delta) <= max(0, epsilon_at_order(alpha, alpha * rho, delta)) * (1 + 1e-9) + 1e-9


@given(budgets)
def test_the_conversion_is_never_below_a_gaussian_of_that_rho(budget: tuple[float, float]) -> None:
    rho, delta = budget
    assert epsilon_from_rho(rho, delta) >= gaussian_epsilon(math.sqrt(2 * rho), delta) - 1e-9


def test_the_tight_conversion_beats_the_textbook_formula() -> None:
    rho = rho_max(4, 1e-6)
    assert rho + 2 * math.sqrt(rho * math.log(1e6)) > 4.4


def test_no_delta_means_no_rho() -> None:
    assert rho_max(4, 0) == 0
    assert epsilon_from_rho(0, 1e-6) == 0
    assert math.isinf(epsilon_from_rho(math.inf, 1e-6))


@pytest.mark.parametrize("delta", [0, 1, -0.1, math.nan])
def test_a_delta_that_is_no_probability_is_refused(delta: float) -> None:
    with pytest.raises(InputError, match="delta must be above 0"):
        epsilon_from_rho(1, delta)


def test_loki_gaussian_levels_have_the_analytic_epsilon_and_not_the_printed_one() -> None:
    true = [gaussian_epsilon(4 / deviation, 0.01) for deviation in (3, 6, 12)]
    assert true == pytest.approx([3.421, 1.349, 0.534], abs=0.001)
    claims = [kandappu_2015_formula_4_2(4, deviation, 0.01) for deviation in (3, 6, 12)]
    assert all("no guarantee" in str(claim) and "Kandappu" in str(claim) for claim in claims)
    assert [claim.epsilon < epsilon for claim, epsilon in zip(claims, true, strict=True)] == [False, True, True]


def test_loki_multiple_choice_formula_is_right() -> None:
    epsilons = [kandappu_2015_formula_4_3(5, p_lie, 0.01) for p_lie in (0.1, 0.3, 0.4)]
    assert epsilons == pytest.approx([3.572, 2.219, 1.775], abs=0.001)
    assert math.isinf(kandappu_2015_formula_4_3(5, 0, 0.01))


def test_a_hundred_gaussian_releases_compose_like_one_with_ten_times_the_shift() -> None:
    totals = [gaussian_epsilon(10 * 4 / deviation, 1e-5) for deviation in (3, 6, 12)]
    assert totals == pytest.approx([144.9, 49.9, 19.1], rel=0.005)


@given(st.floats(0.01, 50), st.floats(0, 100))
def test_gaussian_delta_inverts(mu: float, epsilon: float) -> None:
    delta = gaussian_delta(mu, epsilon)
    if 1e-9 < delta < 0.99:
        assert gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-3, abs=1e-3)
