"""What two-layer reports really give away: the exact law against enumeration, integration and the paper's claim."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from crowdveil import Answers, Choices, Scale, entropy_from
from crowdveil.accounting import Spend
from crowdveil.channel.joint import JointChannel
from crowdveil.channel.two_layer import (
    claimed_epsilon,
    report_laws,
    value_epsilon,
    value_epsilon_at_most,
    vector_epsilon,
)
from crowdveil.errors import ChannelError, InputError, UnservableError
from crowdveil.mechanisms import SparseTwoLayer, TwoLayer

BINARY = Choices(("no", "yes"))
WHOLE = Fraction(0), Fraction(1)


@pytest.mark.parametrize("n_answers", [5, 20, 100])
def test_at_a_claimed_zero_the_loss_is_the_logarithm_of_the_number_of_answers(n_answers: int) -> None:
    assert TwoLayer(low=0, high=1).paper_epsilon(BINARY) == 0
    assert value_epsilon(n_answers, 2, *WHOLE) == pytest.approx(math.log(n_answers), rel=1e-14)
    most = math.comb(n_answers, n_answers // 2)
    assert vector_epsilon(n_answers, 2, *WHOLE) == pytest.approx(math.log(most), rel=1e-14)


ends = st.lists(st.integers(0, 21), min_size=2, max_size=2, unique=True).map(sorted)


@settings(max_examples=40)
@given(ends=ends, n_options=st.integers(2, 4), n_answers=st.integers(1, 4))
def test_report_vectors_have_total_probability_one(ends: list[int], n_options: int, n_answers: int) -> None:
    low, high = Fraction(ends[0], 21), Fraction(ends[1], 21)
    laws = report_laws(n_answers, n_options, low, high)
    vectors = product(range(n_options), repeat=n_answers)
    assert sum(laws[sum(report != 0 for report in vector)] for vector in vectors) == 1


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.4), (0.1, 0.3), (0.2, 1.0)])
def test_the_law_is_the_integral(low: float, high: float) -> None:
    laws = report_laws(6, 3, Fraction(low), Fraction(high))
    for d, law in enumerate(laws):
        integral, _ = quad(lambda p, d=d: (1 - p) ** (6 - d) * (p / 2) ** d, low, high, epsabs=1e-14)
        assert float(law) == pytest.approx(integral / (high - low), rel=1e-9)


def test_the_loss_of_one_answer_is_the_papers_and_grows_with_more() -> None:
    low, high = Fraction(1, 10), Fraction(3, 10)
    claimed = claimed_epsilon(3, low, high)
    assert claimed == pytest.approx(math.log((2 - 0.4) * 2 / 0.4))
    losses = [value_epsilon(k, 3, low, high) for k in range(1, 12)]
    assert losses[0] == claimed
    assert losses == sorted(losses)
    # Each report alone is worth no more than flipping with the smallest p would be.
    assert losses[-1] <= math.log(0.9 * 2 / 0.1)


def test_value_loss_is_the_worst_over_all_neighbours_by_enumeration() -> None:
    low, high, k, s = Fraction(0), Fraction(1, 2), 3, 3
    laws = report_laws(k, s, low, high)
    worst = max(
        laws[sum(map(int.__ne__, report, one))] / laws[sum(map(int.__ne__, report, other))]
        for report in product(range(s), repeat=k)
        for one in product(range(s), repeat=k)
        for other in product(range(s), repeat=k)
        if sum(map(int.__ne__, one, other)) == 1
    )
    assert value_epsilon(k, s, low, high) == pytest.approx(math.log(worst), rel=1e-14)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("n_options", [2, 5])
def test_an_epsilon_is_read_as_the_papers_claim(epsilon: float, n_options: int) -> None:
    domain = Choices(tuple(map(str, range(n_options))))
    crowd = TwoLayer(epsilon=epsilon)
    low, high = crowd.bounds(domain)
    assert 0 <= low < high <= 1
    assert crowd.paper_epsilon(domain) == pytest.approx(epsilon, abs=1e-9)
    assert crowd.guarantee(domain, n_answers=30).epsilon > epsilon


def crowd_of(n_workers: int, n_questions: int, domain: Choices | Scale) -> Answers:
    rows = [(i, j, domain.symbols[0]) for i in range(n_workers) for j in range(n_questions)]
    return Answers.from_rows(rows, domain)


def test_answers_of_a_worker_share_their_flip_probability() -> None:
    answers = crowd_of(4000, 2, BINARY)
    lies = TwoLayer(low=0, high=1).randomize(answers, entropy_from(1)).report.reshape(4000, 2)
    # p ~ U(0, 1): E p = 1/2, both lie with probability E p² = 1/3 and not 1/4; five sigma of 4000 draws is .037.
    assert abs(lies.mean() - 1 / 2) < 0.037
    assert abs((lies.sum(axis=1) == 2).mean() - 1 / 3) < 0.037


def test_the_reports_of_two_layer_carry_the_law_of_one_report() -> None:
    domain = Choices(("a", "b", "c"))
    reports = TwoLayer(low=0.1, high=0.5).randomize(crowd_of(20000, 1, domain), entropy_from(2))
    share = np.bincount(reports.report, minlength=3) / 20000
    assert np.allclose(reports.channels[0].table[0], [0.7, 0.15, 0.15])
    assert np.abs(share - [0.7, 0.15, 0.15]).max() < 5 * math.sqrt(0.25 / 20000)


def test_sparse_two_layer_reports_its_own_marginal_law() -> None:
    domain = Scale(0, 9)
    crowd = SparseTwoLayer(epsilon=1.5)
    reports = crowd.randomize(crowd_of(20000, 1, domain), entropy_from(3))
    share = np.bincount(reports.report, minlength=11) / 20000
    assert np.abs(share - reports.channels[0].table[0]).max() < 5 * math.sqrt(0.25 / 20000)
    kept, _ = quad(lambda e: math.exp(e) / (math.exp(e) + 10) / 3, 0, 3)
    assert reports.channels[0].table[0, 0] == pytest.approx(kept, rel=1e-9)
    assert crowd.guarantee(domain).epsilon == 3


def test_what_makes_no_sense_is_refused() -> None:
    for parameters in ({}, {"epsilon": 1, "low": 0, "high": 1}, {"low": 0.5}, {"low": 0.5, "high": 0.2}):
        with pytest.raises(InputError):
            TwoLayer(**parameters)
    with pytest.raises(UnservableError, match="use sparse-two-layer"):
        TwoLayer(epsilon=1, protect_participation=True)
    with pytest.raises(InputError, match="use one-layer"):
        report_laws(3, 2, Fraction(1, 3), Fraction(1, 3))


@given(
    st.integers(1, 40),
    st.integers(2, 6),
    st.fractions(0, 1, max_denominator=50),
    st.fractions(0, 1, max_denominator=50),
)
def test_the_quick_bound_is_never_below_the_exact_loss(
    n_answers: int, n_options: int, a: Fraction, b: Fraction
) -> None:
    low, high = min(a, b), max(a, b)
    assume(low < high)
    assert value_epsilon_at_most(n_answers, n_options, low, high) >= value_epsilon(n_answers, n_options, low, high)


def test_the_quick_bound_takes_over_without_a_jump_downwards() -> None:
    mechanism = TwoLayer(epsilon=1.0)
    exact, bound = (mechanism.guarantee(BINARY, n_answers=n).epsilon for n in (64, 65))
    assert exact < bound < exact + 0.02


@pytest.mark.parametrize("mechanism", [TwoLayer(epsilon=0.5), SparseTwoLayer(epsilon=0.5)])
def test_what_travels_with_the_reports_is_the_mechanisms_promise(mechanism: TwoLayer | SparseTwoLayer) -> None:
    rows = [
        (worker, question, "yes" if question % 2 else "no") for worker in range(3) for question in range(worker + 5)
    ]
    answers = Answers.from_rows(rows, BINARY)
    (channel,) = mechanism.randomize(answers, entropy_from(1)).channels
    alone = mechanism.channel(BINARY)
    assert channel.guarantee.research_only
    assert channel.guarantee.epsilon > 1.5 * alone.guarantee.epsilon
    assert isinstance(channel, JointChannel)
    assert (channel.table == alone.table).all()
    assert channel != alone
    again = JointChannel.from_json(channel.to_json())
    assert again == channel
    assert again.guarantee == channel.guarantee
    with pytest.raises(ChannelError, match="was changed"):
        JointChannel.from_json(channel.to_json() | {"epsilon": "0.1"})
    with pytest.raises(InputError, match="not independent"):
        Spend.through(channel, name="study", count=7)
