"""Amplification by shuffling is never below what enumeration finds, and not far above what is known to be true."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from accounting.enumerated_shuffle import binary_worst_delta, blanket_delta, rows_of, worst_delta
from numpy.typing import NDArray

from crowdveil import Channel, Choices, InputError, Scale
from crowdveil.accounting import (
    PureLaw,
    ShuffledGuarantee,
    amplify_by_shuffling,
    amplify_levels,
    compose_shuffled,
    minimum_for_amplification,
)
from crowdveil.accounting.composition import RULES, Release
from crowdveil.accounting.privacy_blanket import Blanket, blanket_of_epsilon, blankets_of
from crowdveil.accounting.shuffled_divergence import MAX_PEOPLE, ShuffledDivergence
from crowdveil.audit.black_box import black_box
from crowdveil.channel import identity
from crowdveil.channel.encoding import Rotate, Table
from crowdveil.entropy import Entropy, entropy_from
from crowdveil.mechanisms import mechanism
from crowdveil.sampler import draw


def randomized_response(epsilon: float, k: int = 2) -> Channel:
    return mechanism("randomized-response", epsilon=epsilon).channel(Choices(tuple("abcdefghij"[:k])))


def keep_and_lie(channel: Channel) -> tuple[Fraction, Fraction]:
    form = channel.form
    assert isinstance(form, Rotate)
    return Fraction(form.keep, 2**channel.bits), Fraction(form.lie, 2**channel.bits)


# The three rows pull apart differently: each direction of each pair has a divergence of its own.
UNEVEN = Channel(
    ("low", "middle", "high"),
    ("a", "b", "c"),
    32,
    "prefix",
    Table(
        np.array(
            [[1 << 31, 1 << 30, 1 << 30], [5 << 28, 3 << 29, 5 << 28], [1 << 30, 3 << 29, 3 << 29]], dtype=np.uint64
        )
    ),
)


@pytest.mark.parametrize("local_epsilon", [0.3, 1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 21, 34, 50])
def test_binary_bound_is_not_below_any_dataset_of_up_to_fifty_people(n: int, local_epsilon: float) -> None:
    channel = randomized_response(local_epsilon)
    for delta in (1e-6, 1e-2):
        bound = amplify_by_shuffling([channel], n, delta=delta)
        assert binary_worst_delta(keep_and_lie(channel)[0], n, bound.epsilon) <= Fraction(bound.delta)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_divergence_is_that_of_the_blanket_statistic(n: int, k: int) -> None:
    channel = randomized_response(1.5, k)
    (blanket,) = blankets_of([channel], channel.epsilon, Fraction(1))
    divergence = ShuffledDivergence(blanket, n, cut=1e-15)
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        exact = blanket_delta(*keep_and_lie(channel), k, n, epsilon)
        assert exact <= Fraction(divergence(epsilon)) <= exact * (1 + Fraction(1, 10**9)) + Fraction(1, 10**13)


# Both numbers vary; only the number of blanket reports; only how many of them are of the two answers.
BOTH_VARY = Blanket(Fraction(1, 2), Fraction(3, 4), Fraction(1, 10), Fraction(1, 5))
ONLY_C_VARIES = Blanket(Fraction(1), Fraction(3, 4), Fraction(1, 4), Fraction(0))
ONLY_M_VARIES = Blanket(Fraction(1, 2), Fraction(3, 4), Fraction(1, 10), Fraction(4, 5))


@pytest.mark.parametrize("blanket", [BOTH_VARY, ONLY_C_VARIES, ONLY_M_VARIES], ids=["both", "C", "m"])
@pytest.mark.parametrize("n", [200, 4000, 400_000])
def test_ranges_of_counts_are_taken_at_their_worst_end(
    n: int, blanket: Blanket, monkeypatch: pytest.MonkeyPatch
) -> None:
    fine = ShuffledDivergence(blanket, n, cut=1e-12)
    monkeypatch.setattr("crowdveil.accounting.shuffled_divergence._BINS", 12)
    coarse = ShuffledDivergence(blanket, n, cut=1e-12)
    for epsilon in (0.5 / math.sqrt(n), 2 / math.sqrt(n), 6 / math.sqrt(n)):
        assert fine(epsilon) * (1 - 1e-12) <= coarse(epsilon) <= 20 * fine(epsilon)


@pytest.mark.parametrize(
    ("channels", "n"),
    [
        ([UNEVEN], 4),
        ([randomized_response(1, 3)], 4),
        ([randomized_response(0.7), randomized_response(0.4)], 4),
        ([randomized_response(0.5), UNEVEN], 2),
        ([mechanism("optimal-scale", epsilon=1).channel(Scale(1, 3))], 3),
        ([mechanism("subset-selection", epsilon=0.5).channel(Choices(tuple("abcd")))], 3),
        ([mechanism("discrete-laplace", epsilon=1.5).channel(Scale(1, 4))], 4),
    ],
    ids=["uneven", "ternary", "two questions", "unlike questions", "optimal-scale", "subset", "laplace"],
)
def test_bound_of_any_channel_is_not_below_any_dataset(channels: list[Channel], n: int) -> None:
    rows = rows_of(channels)
    local = math.fsum(channel.epsilon for channel in channels)
    for share in (Fraction(1), Fraction(1, 2)):
        divergences = [ShuffledDivergence(one, n, cut=1e-12) for one in blankets_of(channels, local, share)]
        for epsilon in (0.0, 0.2 * local, 0.5 * local, 0.8 * local):
            largest = max(divergence(epsilon) for divergence in divergences)
            assert worst_delta(rows, n, epsilon) <= Fraction(largest)
            # Nobody else makes it worse; cutting the common part in two does, a little.
            assert largest <= 1.1 * float(worst_delta(rows, 1, epsilon)) + 1e-9


def test_clones_of_a_bare_epsilon_lie_below_every_row() -> None:
    # Two rows alike and a third as far from them as ε allows: a quarter of each would be too much for it.
    rows = [[3 << 30, 1 << 30], [3 << 30, 1 << 30], [1 << 30, 3 << 30]]
    channel = Channel(("x", "y", "z"), ("a", "b"), 32, "prefix", Table(np.array(rows, dtype=np.uint64)))
    clone = blanket_of_epsilon(channel.epsilon).clone
    assert all(clone * (rows[0][y] + rows[1][y]) <= min(row[y] for row in rows) for y in (0, 1))


def test_bound_of_a_bare_epsilon_is_not_below_any_channel_of_it() -> None:
    for channel in (UNEVEN, randomized_response(1), randomized_response(1, 4)):
        divergence = ShuffledDivergence(blanket_of_epsilon(channel.epsilon), 4, cut=1e-12)
        for epsilon in (0.0, 0.3, 0.6):
            assert worst_delta(rows_of([channel]), 4, epsilon) <= Fraction(divergence(epsilon))


@pytest.mark.parametrize(
    ("k", "n", "local_epsilon", "low", "high"),
    [
        (2, 1_000, 3, 0.694, 0.824),
        (2, 10_000, 3, 0.169, 0.227),
        (5, 1_000, 1, 0.1079, 0.108 * 1.01),
        (5, 1_000, 2, 0.3335, 0.334 * 1.01),
        (5, 1_000, 3, 0.7503, 0.751 * 1.01),
    ],
)
def test_bounds_lie_between_what_is_reached_and_what_is_known(
    k: int, n: int, local_epsilon: float, low: float, high: float
) -> None:
    assert low <= amplify_by_shuffling([randomized_response(local_epsilon, k)], n).epsilon <= high


def test_a_million_reports_are_hidden_well() -> None:
    assert 0.0170 < amplify_by_shuffling([randomized_response(3, 5)], 10**6).epsilon < 0.0180
    assert (
        amplify_by_shuffling([randomized_response(3)], 10**9).epsilon
        == amplify_by_shuffling([randomized_response(3)], MAX_PEOPLE).epsilon
    )


def test_clones_with_the_channels_own_split_beat_those_of_its_epsilon() -> None:
    for name in ("subset-selection", "optimal-scale", "discrete-laplace"):
        channel = mechanism(name, epsilon=1).channel(Scale(1, 5))
        own = amplify_by_shuffling([channel], 1000).epsilon
        assert own < 0.9 * amplify_by_shuffling(channel.epsilon, 1000).epsilon


def test_six_questions_are_one_report_of_the_product_channel() -> None:
    whole = amplify_by_shuffling([randomized_response(0.5)] * 6, 10_000)
    assert whole.local_epsilon == pytest.approx(3, rel=1e-6)
    assert 0.1 < whole.epsilon < amplify_by_shuffling(3, 10_000).epsilon
    # Too many kinds of pairs to look at one by one.
    many = amplify_by_shuffling([randomized_response(0.02)] * 100, 1000)
    assert many.epsilon == amplify_by_shuffling(many.local_epsilon, 1000).epsilon


def test_worst_of_each_number_covers_every_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = mechanism("optimal-scale", epsilon=1).channel(Scale(1, 5))
    blankets = blankets_of([channel], 1.0, Fraction(1))
    assert len(blankets) > 1
    monkeypatch.setattr("crowdveil.accounting.privacy_blanket.MAX_PAIRS", 1)
    (worst,) = blankets_of([channel], 1.0, Fraction(1))
    covering = ShuffledDivergence(worst, 300, cut=1e-12)
    for one in blankets:
        assert worst.own >= one.own
        assert worst.advantage >= one.advantage
        assert worst.clone <= one.clone
        assert worst.common <= one.common
        for epsilon in (0.05, 0.2, 0.4):
            assert ShuffledDivergence(one, 300, cut=1e-12)(epsilon) <= covering(epsilon) * (1 + 1e-9)


def test_what_is_cut_off_a_tail_is_added_to_delta() -> None:
    channel = randomized_response(1, 3)
    (blanket,) = blankets_of([channel], channel.epsilon, Fraction(1))
    exact = ShuffledDivergence(blanket, 2000, cut=1e-25)
    # A cut of .01 leaves out what lies beyond about three deviations, which is all there is at large ε.
    for epsilon in (0.0, 0.05, 0.2, 0.4):
        assert exact(epsilon) <= ShuffledDivergence(blanket, 2000, cut=1e-2)(epsilon)


def test_only_people_of_the_same_level_hide_each_other() -> None:
    levels = {"low": [randomized_response(3)], "high": [randomized_response(1)]}
    result = amplify_levels(levels, {"low": 1000, "high": 100})
    assert result["low"] == amplify_by_shuffling(levels["low"], 1000)
    assert result["high"] == amplify_by_shuffling(levels["high"], 100)
    with pytest.raises(InputError, match="each level"):
        amplify_levels(levels, {"low": 1000})


def test_dishonest_people_hide_nobody() -> None:
    channel = randomized_response(2)
    with_liars = amplify_by_shuffling([channel], 1000, dishonest_share=0.1)
    assert with_liars.epsilon == amplify_by_shuffling([channel], 900).epsilon
    assert "β = 0.1" in str(with_liars)
    assert "at least 1000 people" in with_liars.assumption
    assert "1 − β = 0.9" in with_liars.assumption
    assert with_liars.to_json()["dishonest_share"] == 0.1
    for share in (-0.1, 1.0, math.nan):
        with pytest.raises(InputError, match="dishonest_share"):
            amplify_by_shuffling([channel], 1000, dishonest_share=share)


def test_too_few_people_are_told_so_and_cost_no_delta() -> None:
    few = amplify_by_shuffling([randomized_response(2)], 20)
    # At δ = 10⁻⁶ there is a gain of .00001, which no printed number shows.
    assert (few.epsilon, few.delta, few.amplified) == (few.local_epsilon, 0.0, False)
    assert "20 are too few" in str(few)


def test_guarantee_names_its_adversary() -> None:
    words = str(amplify_by_shuffling([randomized_response(3)], 1000))
    assert words.startswith(
        "ε ≤ 0.8232, δ = 1e-06 against whoever sees the shuffled table only, if at least 1000 people"
    )
    assert "who shuffles is honest" in words


def test_linkable_studies_and_unprotected_answers_are_refused() -> None:
    with pytest.raises(InputError, match="share a pseudonym"):
        amplify_by_shuffling([randomized_response(1)], 1000, linkable=True)
    with pytest.raises(InputError, match="share a pseudonym"):
        amplify_by_shuffling(1.0, 1000, linkable=True)
    with pytest.raises(InputError, match="unprotected"):
        amplify_by_shuffling([randomized_response(1), identity(Choices(("no", "yes")))], 1000)
    with pytest.raises(InputError, match="one channel or more"):
        amplify_by_shuffling([], 1000)
    for n in (0, -5, 10**10):
        with pytest.raises(InputError, match="n must be"):
            amplify_by_shuffling([randomized_response(1)], n)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(InputError, match="delta"):
            amplify_by_shuffling([randomized_response(1)], 1000, delta=delta)


def test_studies_compose_like_randomised_responses_that_sometimes_reveal_everything() -> None:
    studies = [ShuffledGuarantee(0.1, 1e-7, 1.0, 1000), ShuffledGuarantee(0.2, 2e-7, 2.0, 1000)] * 10
    costs = compose_shuffled(studies, delta=1e-6)
    assert costs["basic"].epsilon == pytest.approx(3.0)
    assert 3e-6 <= costs["basic"].delta <= 3.001e-6
    parts = [Release(PureLaw(study.epsilon), 1) for study in studies]
    for name, rule in RULES.items():
        assert costs[name].epsilon == rule(parts, 1e-6).epsilon
    assert costs["zcdp"].delta == pytest.approx(4e-6)
    assert costs["pld"].epsilon < costs["basic"].epsilon


@pytest.mark.parametrize(("local_epsilon", "wanted"), [(1, 0.5), (2, 1.0), (3, 0.5)])
def test_the_minimum_is_the_fewest_people_that_amplify(local_epsilon: float, wanted: float) -> None:
    channel = randomized_response(local_epsilon, 3)
    fewest = minimum_for_amplification([channel], wanted)
    assert fewest is not None
    assert amplify_by_shuffling([channel], fewest).epsilon <= wanted * (1 + 1e-5)
    assert amplify_by_shuffling([channel], fewest - 1).epsilon > wanted * (1 - 1e-5)
    with_liars = minimum_for_amplification([channel], wanted, dishonest_share=0.25)
    assert with_liars == math.ceil(fewest / 0.75)


def test_a_minimum_of_twenty_amplifies_nothing_at_two_and_more() -> None:
    for local_epsilon in (2, 3):
        fewest = minimum_for_amplification([randomized_response(local_epsilon)], 0.99 * local_epsilon)
        assert fewest is not None
        assert fewest > 20
    assert minimum_for_amplification([randomized_response(1)], 2) == 1
    assert minimum_for_amplification([randomized_response(8)] * 4, 0.1) is None


# Ten people, of whom nine have the same answer; δ is large enough for an audit to see its part of the bound.
AUDITED_PEOPLE, AUDITED_DELTA = 10, 0.01


def shuffled_tables(channel: Channel, others: int, entropy: Entropy, answer: int, n: int) -> NDArray[np.int64]:
    """Shuffled tables, drawn report by report: of two options a table is the number of its ones."""
    answers = np.full((n, AUDITED_PEOPLE), others)
    answers[:, 0] = answer
    reports = draw(channel, answers.ravel(), entropy).reshape(n, AUDITED_PEOPLE)
    return reports.sum(axis=1)


@pytest.mark.parametrize("others", [0, 1])
def test_an_audit_of_shuffled_tables_stays_below_the_bound_and_finds_half_of_it(others: int) -> None:
    channel, entropy = randomized_response(1), entropy_from(26)
    bound = amplify_by_shuffling([channel], AUDITED_PEOPLE, delta=AUDITED_DELTA)
    assert bound.amplified
    lower = black_box(
        lambda answer, n: shuffled_tables(channel, others, entropy, answer, n), 2, samples=100_000, delta=AUDITED_DELTA
    )
    assert bound.epsilon / 2 < lower.epsilon <= bound.epsilon


@pytest.mark.parametrize("n", [1_000, 10_000, 100_000])
@pytest.mark.parametrize("local_epsilon", [0.5, 1, 1.4])
def test_bounds_are_below_the_published_closed_form(n: int, local_epsilon: float) -> None:
    # Feldman, McMillan & Talwar (2021), theorem 3.1, for ε₀ ≤ ln(n/(16·ln(2/δ))).
    delta = 1e-6
    assert local_epsilon <= math.log(n / (16 * math.log(2 / delta)))
    ratio = math.exp(local_epsilon)
    spread = 8 * math.sqrt(ratio * math.log(4 / delta)) / math.sqrt(n) + 8 * ratio / n
    published = math.log1p((ratio - 1) / (ratio + 1) * spread)
    assert amplify_by_shuffling(local_epsilon, n).epsilon < published
