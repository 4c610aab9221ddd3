"""The certified ρ is never below an attained divergence, and hardly above it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crowdveil.channel.divergence import _WorstRenyi, epsilon_of, rho_of
from crowdveil.channel.encoding import integer_row


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_randomised_response_of_at_most_six_symbols_has_the_closed_form(epsilon: float, k: int) -> None:
    keep = math.exp(epsilon)
    rows = [integer_row([keep if x == y else 1.0 for y in range(k)], 64) for x in range(k)]
    exact = epsilon * (keep - 1) / (keep + k - 1)
    assert exact * (1 - 1e-9) <= rho_of(np.array(rows, dtype=np.uint64)) <= exact * 1.0002


@pytest.mark.parametrize("seed", range(8))
def test_rho_bounds_every_order_on_a_fine_grid(seed: int) -> None:
    generator = np.random.default_rng(seed)
    rows = np.exp(generator.normal(size=(4, 7)) * generator.uniform(0.05, 2))
    weights = np.array([integer_row(row.tolist(), 64) for row in rows], dtype=np.uint64)
    rho, worst = rho_of(weights), _WorstRenyi(weights)
    grid = np.concatenate([1 + np.geomspace(1e-6, 1, 200), np.geomspace(2, 50, 200)])
    attained = max(worst(float(alpha) - 1) / float(alpha) for alpha in grid)
    assert attained * (1 - 1e-6) <= rho <= min(attained * 1.001, epsilon_of(weights) ** 2 / 2 * 1.0001)


def test_a_rare_but_telling_output_does_not_overflow() -> None:
    weights = np.array([[2**64 - 1 - 2**60, 2**60, 1], [2**64 - 2**60 - 2**40, 2**60, 2**40]], dtype=np.uint64)
    assert 0 < rho_of(weights) <= epsilon_of(weights) ** 2 / 2


def test_a_channel_that_says_nothing_costs_nothing() -> None:
    assert rho_of(np.full((3, 2), 2**31, dtype=np.uint64)) == 0
    assert epsilon_of(np.full((3, 2), 2**31, dtype=np.uint64)) == 0


@pytest.mark.parametrize(("k", "excess"), [(6, 0.0), (7, 0.015), (11, 0.20)])
def test_from_seven_symbols_on_the_divergence_of_order_one_undercounts(k: int, excess: float) -> None:
    epsilon = 0.05
    keep = math.exp(epsilon)
    rows = [integer_row([keep if x == y else 1.0 for y in range(k)], 64) for x in range(k)]
    kullback_leibler = epsilon * (keep - 1) / (keep + k - 1)
    assert rho_of(np.array(rows, dtype=np.uint64)) / kullback_leibler - 1 == pytest.approx(excess, abs=0.005)


@pytest.mark.parametrize("epsilon", [1e-5, 1e-3, 0.01])
def test_small_losses_keep_their_digits(epsilon: float) -> None:
    """Of two mirrored rows ρ is ε·tanh(ε/2); at small ε it stands in the last digits of the sums."""
    high = round(2**64 * math.exp(epsilon) / (1 + math.exp(epsilon)))
    weights = np.array([[high, 2**64 - high], [2**64 - high, high]], dtype=np.uint64)
    exact = epsilon_of(weights) * math.tanh(epsilon_of(weights) / 2)
    assert exact * (1 - 1e-9) <= rho_of(weights) <= exact * 1.0002
