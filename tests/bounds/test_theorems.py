"""The papers' worked examples, the premises, and the counterexamples that the calculators state."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

from crowdveil import InputError
from crowdveil.bounds import Bound, li, sun, wang

LEVELS = range(10)


def test_sun_worked_examples() -> None:
    laplace = sun.laplace_error([0.0], LEVELS, 1, shares=[0.1] * 7, sigmas=[1.0] * 7)
    response = sun.randomized_response_error([0.0], LEVELS, 1, shares=[0.1] * 7, sigmas=[1.0] * 7)
    factorization = sun.factorization_error(1000, 100, 10, 1, answered=100)
    assert laplace.value == pytest.approx(14.130, abs=5e-4)
    assert laplace.applies
    assert response.value == pytest.approx(3.437, abs=5e-4)
    assert factorization.value == pytest.approx(1.798, abs=5e-4)


def test_sun_theorem_2_says_when_jensen_is_used_the_wrong_way() -> None:
    middle = sun.laplace_error([4.5], LEVELS, 1, shares=[0.1], sigmas=[1.0])
    assert not middle.applies
    assert sun.laplace_error([4.5], LEVELS, 1, shares=[0.1], sigmas=[1.0], fill=0.0).applies


def test_sun_theorem_3_is_exceeded_in_its_own_example() -> None:
    rng = np.random.default_rng(20260101)
    n_workers, symbols = 400_000, 11
    answer = np.clip(np.rint(rng.normal(0, 1, n_workers)), 0, 9).astype(int)
    answer[rng.random(n_workers) > 0.1] = 10
    kept = rng.random(n_workers) < math.e / (10 + math.e)
    report = np.where(kept, answer, (answer + rng.integers(1, symbols, n_workers)) % symbols)
    measured = report[report < 10].mean()
    bound = sun.randomized_response_error([0.0], LEVELS, 1, shares=[0.1], sigmas=[1.0])
    limit = sun.randomized_response_limit(0.0, LEVELS, 1, share=0.1, sigma=1.0)
    assert measured == pytest.approx(limit, abs=5 * 3 / math.sqrt(n_workers))
    assert limit == pytest.approx(4.43, abs=0.005)
    assert measured > bound.value
    assert not bound.applies
    assert "4.43" in bound.counterexample


def test_sun_theorem_5_is_exceeded_in_its_own_example() -> None:
    rng = np.random.default_rng(20260102)
    n_questions, rank, n_workers = 1000, 100, 20
    profiles = rng.normal(size=(rank, n_questions))
    profiles /= np.abs(profiles).sum(axis=0)
    truths = rng.uniform(0, 9, n_questions)
    released = []
    for _ in range(n_workers):
        mine = rng.random(n_questions) < 0.5
        seen = profiles[:, mine]
        noise = rng.laplace(0, 10, rank)
        answers = np.clip(np.rint(truths[mine] + rng.normal(size=mine.sum())), 0, 9)
        released.append(np.linalg.solve(seen @ seen.T, seen @ answers - noise) @ profiles)
    error = np.abs(np.mean(released, axis=0) - truths).mean()
    bound = sun.factorization_error(n_questions, rank, 10, 1, answered=500)
    assert error > 2 * bound.value
    assert not bound.applies


def test_li_privacy_formulas() -> None:
    assert li.one_layer_epsilon(0.25, 4).value == pytest.approx(math.log(9))
    assert not li.one_layer_epsilon(0.9, 2).applies
    assert li.two_layer_epsilon(0.1, 0.4, 4).value == pytest.approx(li.one_layer_epsilon(0.25, 4).value)
    assert li.same_privacy(0.25, 0.1, 0.4, 4).applies
    assert not li.same_privacy(0.25, 0.1, 0.5, 4).applies
    assert not li.two_layer_epsilon(0.0, 1.0, 2, n_answers=2).applies


def test_li_two_layer_counterexample_is_true() -> None:
    # Two answers, two options, flip ~ U(0, 1): P(both kept) = ∫(1−p)² = 1/3, P(one kept) = ∫p(1−p) = 1/6.
    claimed = li.two_layer_epsilon(0.0, 1.0, 2, n_answers=2)
    both, one = quad(lambda p: (1 - p) ** 2, 0, 1)[0], quad(lambda p: p * (1 - p), 0, 1)[0]
    assert claimed.value == pytest.approx(0.0, abs=1e-12)
    assert math.log(both / one) == pytest.approx(math.log(2))


def test_li_equation_6_is_not_an_upper_bound() -> None:
    bound = li.error_bound([0.9] * 5)
    majority = binom.cdf(2, 5, 0.9)
    assert bound.value == pytest.approx(0.0039, abs=5e-5)
    assert majority == pytest.approx(0.0086, abs=5e-5)
    assert majority > bound.value
    assert not bound.applies
    assert li.error_bound([0.9] * 5, flips=0.2).value > bound.value


def test_li_density_of_the_error_change_is_a_density_and_matches_products_of_uniforms() -> None:
    for high, n_important in [(1.0, 2), (0.6, 3), (0.8, 5)]:
        largest = high**n_important
        total = quad(lambda x, b=high, n=n_important: li.error_change_density(x, b, n), 0, largest, limit=500)[0]
        assert total == pytest.approx(1.0, abs=1e-4)
    mean = quad(lambda x: x * li.error_change_density(x, 0.6, 3), 0, 0.6**3)[0]
    assert mean == pytest.approx(li.one_layer_error_change(0.3, 3).value, rel=1e-6)


def test_li_equation_10_drops_the_factor_2_of_every_user() -> None:
    change = li.one_layer_error_change(0.5, 2)
    tiny = 1e-9
    from_9 = (2 * (tiny + 0.5 * (1 - 2 * tiny))) ** 2 - (2 * tiny) ** 2
    assert change.value == pytest.approx(0.25)
    assert change.corrected == pytest.approx(1.0)
    assert from_9 == pytest.approx(change.corrected, abs=1e-6)
    assert not change.applies
    assert "factor 2" in change.counterexample
    assert change.to_json()["corrected"] == 1.0
    # "G and 2p are very close to each other": at p = .1 they are .136 and .2.
    assert li.error_bound([0.1]).value == pytest.approx(0.136, abs=5e-4)


def test_li_importance_is_largest_for_the_surest_users_and_symmetric() -> None:
    scores = li.importance([0.5, 0.7, 0.9, 0.1])
    assert scores[0] == pytest.approx(1.0)
    assert scores[0] < scores[1] < scores[2]
    assert scores[2] == pytest.approx(scores[3])
    assert li.error_bound([0.7]).value > 1
    assert li.important([0.5, 0.7, 0.95], threshold=0.9).tolist() == [False, False, True]


def test_wang_effective_ability_and_wisdom() -> None:
    assert wang.effective_ability([0.8], 50.0)[0] == pytest.approx(0.8)
    assert wang.collective_wisdom([0.8, 0.2], 50.0) == pytest.approx(0.36)
    assert wang.collective_wisdom([1.0], 1.0) == pytest.approx(math.tanh(0.5) ** 2)
    assert wang.collective_wisdom([0.5] * 9, 3.0) == pytest.approx(0.0)


def test_wang_theorem_2_speaks_only_about_enormous_studies() -> None:
    crowd = [0.8] * 300_000
    small = wang.label_error([0.8] * 200, 10_000, 1.0, start_error=0.0)
    huge = wang.label_error(crowd, 100_000_000, 3.0, start_error=0.0)
    assert not small.applies
    assert huge.applies
    low, high = wang.projection_range(1.0, 100_000)
    assert low > high
    assert huge.value == 0.0
    assert wang.label_error([0.8] * 200, 10**8, 3.0).value == pytest.approx(
        2 * math.exp(-100 * wang.collective_wisdom([0.8] * 200, 3.0))
    )
    assert not wang.label_error(crowd, 100_000_000, 3.0).applies


def test_wang_theorem_2_says_where_its_proof_fails_although_the_printed_premises_hold() -> None:
    n, m, epsilon = 200, 5_000_000, 6.0
    bound = wang.label_error([1.0] * n, m, epsilon, start_error=0.0)
    wisdom = wang.collective_wisdom([1.0] * n, epsilon)
    low, high = wang.projection_range(wisdom, m)
    assert bound.applies_as_printed
    assert not bound.applies
    assert [premise.source for premise in bound.premises if not premise.holds] == ["crowdveil"]
    assert "+277" in str(bound)
    assert wang.proof_exponent(n, m, wisdom, high) == pytest.approx(277, abs=0.5)
    assert wang.proof_exponent(n, m, wisdom, low) == pytest.approx(643, abs=0.5)
    assert -n * wisdom / 2 == pytest.approx(-99, abs=0.05)
    assert not wang.ability_error([1.0] * n, m, 1.0, start_error=0.0).applies


def test_so_many_workers_take_the_proof_of_wang_theorem_2_through() -> None:
    m, epsilon = 5_000_000, 6.0
    wisdom = wang.collective_wisdom([1.0], epsilon)
    _, high = wang.projection_range(wisdom, m)
    enough = math.ceil(wang.sufficient_workers(m, wisdom, high))
    assert enough == pytest.approx(17_500, abs=100)
    assert wang.proof_exponent(enough, m, wisdom, high) <= -enough * wisdom / 2
    assert wang.label_error([1.0] * enough, m, epsilon, start_error=0.0).applies


def test_wang_theorem_3() -> None:
    bound = wang.ability_error([0.9] * 50, 10**9, 1.0, start_error=0.0)
    assert bound.value == pytest.approx(6 * math.sqrt(math.log(10**9) / 10**9))
    assert not wang.ability_error([0.9] * 50, 10**9, 1.5, start_error=0.0).applies


def test_wang_theorem_4_needs_its_large_n() -> None:
    small = wang.majority_error_floor(100, 0.25, 2.0)
    large = wang.majority_error_floor(10**9, 0.3, 3.0)
    assert small.value > 0.5
    assert not small.applies
    assert large.applies
    assert wang.majority_error(100, 4, 2.0) == pytest.approx(0.35, abs=0.05)


@pytest.mark.parametrize("n_others", [1, 2, 10, 101, 10_000])
def test_wang_equation_36_holds_with_berry_esseen_and_for_no_n_as_printed(n_others: int) -> None:
    counts = np.arange(n_others + 1)
    points = 2 * (counts - n_others / 2) / math.sqrt(n_others)
    below, at_most = binom.cdf(counts - 1, n_others, 0.5), binom.cdf(counts, n_others, 0.5)
    distance = max(np.abs(below - norm.cdf(points)).max(), np.abs(at_most - norm.cdf(points)).max())
    assert 1 / (16 * math.sqrt(n_others)) < distance < 0.4748 / math.sqrt(n_others)


def test_wang_equation_37_is_below_the_exact_error_with_the_constant_mended() -> None:
    for n, experts in [(100, 4), (500, 17), (10**6, 63)]:
        assert wang.berry_esseen_floor(n, experts) <= wang.majority_error(n, experts, 2.0)
    # With "≥ −k/√(n − k)", as printed before (37), the product is above the error itself where experts never err.
    n, experts = 500, 17
    printed = binom.sf(n / 2 - experts - 1, n - experts, 0.5)
    assert printed > wang.majority_error(n, experts, 50.0)


def test_wang_theorem_4_leans_on_a_theorem_2_that_its_experts_are_too_few_for() -> None:
    for n in (10**2, 10**4, 10**8):
        experts = math.ceil(n**0.499)
        assert n * (experts / n) ** 2 < 4 < 64 * math.log(8) ** 2 * math.log(9)
    assert "second half of (34)" in wang.majority_error_floor(10**6, 0.3, 3.0).counterexample


def test_exact_majority_error_matches_simulation() -> None:
    rng = np.random.default_rng(5)
    votes = rng.binomial(30, 0.5, 200_000) + rng.binomial(6, math.e / (1 + math.e), 200_000)
    simulated = (votes < 18).mean() + 0.5 * (votes == 18).mean()
    assert wang.majority_error(36, 6, 1.0) == pytest.approx(simulated, abs=0.005)


def test_a_bound_prints_and_serialises_what_fails() -> None:
    bound: Bound = li.two_layer_epsilon(0.0, 1.0, 2, n_answers=3)
    assert "does not apply" in str(bound)
    assert json.loads(json.dumps(bound.to_json()))["applies"] is False


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: li.one_layer_epsilon(0.0, 2),
        lambda: li.two_layer_epsilon(0.5, 0.4, 2),
        lambda: sun.laplace_error([0.0], LEVELS, -1, shares=[0.1], sigmas=[1.0]),
        lambda: sun.laplace_error([0.0], LEVELS, 1, shares=[0.1, 0.2], sigmas=[1.0]),
        lambda: wang.effective_ability([1.2], 1.0),
    ],
)
def test_impossible_numbers_are_refused(wrong: object) -> None:
    with pytest.raises(InputError):
        wrong()
