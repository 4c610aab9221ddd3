"""Composition rules agree with exact enumeration, with each other, and with dp-accounting where that is right."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st

from crowdveil import Channel, InputError
from crowdveil.accounting import ChannelLaw, GaussianLaw, JointLaw, PureLaw, Spend, Unprotected, releases, totals
from crowdveil.accounting.composition import RULES, Release, basic, pld, renyi, zcdp
from crowdveil.accounting.dominating_pairs import channel_atoms, hockey_stick
from crowdveil.channel.encoding import Rotate, Table, integer_row

_DIGITS = Context(prec=60)


@pytest.mark.parametrize(
    "epsilon", [8.042397458757427e-05, 0.0005262982918748419, 0.0019433076194217325, 0.3, 3.4759, 20]
)
def test_the_numbers_of_a_bare_epsilon_are_not_one_digit_too_small(epsilon: float) -> None:
    law, exact = PureLaw(epsilon), Decimal(epsilon)
    keep = _DIGITS.divide(1, 1 + _DIGITS.exp(-exact))
    assert Decimal(law.rho) >= _DIGITS.multiply(exact, 2 * keep - 1)
    for alpha in (1.001, 1.5, 3.0, 40.0, 1e4):
        order = Decimal(alpha) - 1
        moment = keep * _DIGITS.exp(order * exact) + (1 - keep) * _DIGITS.exp(-order * exact)
        assert Decimal(float(law.renyi(np.array([alpha]))[0])) >= min(_DIGITS.divide(_DIGITS.ln(moment), order), exact)
    for times in (3, 470, 738, 825):
        joint, _ = JointLaw(epsilon).as_independent(times, "vector")
        assert Fraction(joint.epsilon) >= times * Fraction(epsilon)
        assert Fraction(Spend(law, "", times).epsilon) >= times * Fraction(epsilon)


def k_ary(n_symbols: int, epsilon: float) -> Channel:
    symbols = tuple(str(symbol) for symbol in range(n_symbols))
    lie = int(2**32 / (math.exp(epsilon) + n_symbols - 1)) + 1
    return Channel(symbols, symbols, 32, "rotate", Rotate(2**32 - (n_symbols - 1) * lie, lie))


def skewed() -> Channel:
    """Three rows whose worst pair differs from place to place."""
    rows = [integer_row(row, 64) for row in ([0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.25, 0.15, 0.6])]
    return Channel(("a", "b", "c"), ("a", "b", "c"), 64, "prefix", Table(np.array(rows, dtype=np.uint64)))


def exact_delta(channel: Channel, count: int, epsilon: float) -> float:
    """δ(ε) of `count` reports by enumeration, the same two inputs throughout, at the worst pair."""
    table = [[Fraction(int(w), 2**channel.bits) for w in row] for row in channel.weights]
    pairs = [(p, q) for p in table for q in table if p is not q]
    return max(_pair_delta(p, q, count, epsilon) for p, q in pairs)


def _pair_delta(p: list[Fraction], q: list[Fraction], count: int, epsilon: float) -> float:
    gamma = Fraction(math.exp(epsilon))
    transcripts = product(range(len(p)), repeat=count)
    return float(sum(max(0, math.prod(p[y] for y in ys) - gamma * math.prod(q[y] for y in ys)) for ys in transcripts))


@pytest.mark.parametrize("channel", [k_ary(2, 0.5), k_ary(3, 0.7), skewed()], ids=["binary", "ternary", "skewed"])
@pytest.mark.parametrize("delta", [1e-3, 1e-2, 0.1])
def test_no_rule_is_below_exact_enumeration(channel: Channel, delta: float) -> None:
    parts = [Release(ChannelLaw(channel), 5)]
    for rule in (renyi, zcdp, pld):
        assert exact_delta(channel, 5, rule(parts, delta).epsilon) <= delta * (1 + 1e-6)


def test_pld_is_tight_for_randomised_response() -> None:
    channel = k_ary(3, 0.7)
    cost = pld([Release(ChannelLaw(channel), 6)], 1e-3)
    assert exact_delta(channel, 6, cost.epsilon - 0.003) > 1e-3


def test_twenty_seven_five_ary_answers_are_the_exact_count_on_a_fixed_schedule() -> None:
    law = ChannelLaw(k_ary(5, 0.25))
    assert pld([Release(law, 27)], 1e-6).epsilon <= 4 < pld([Release(law, 28)], 1e-6).epsilon


@pytest.mark.parametrize(("deviation", "total"), [(3, 144.9), (6, 49.9), (12, 19.1)])
def test_a_hundred_releases_of_lokis_gaussian(deviation: float, total: float) -> None:
    spends = [Spend(GaussianLaw(4 / deviation), "rating", 100)]
    assert totals(spends, 1e-5)["vector"]["pld"].epsilon == pytest.approx(total, rel=0.005)


def test_a_gaussian_on_the_grid_is_as_tight_as_the_exact_one() -> None:
    gaussian, hardly = GaussianLaw(0.5), PureLaw(1e-3)
    mixed = pld([Release(gaussian, 20), Release(hardly, 1)], 1e-5).epsilon
    alone = pld([Release(gaussian, 20)], 1e-5).epsilon
    assert alone <= mixed <= alone + 0.003


@given(st.floats(0.01, 3), st.integers(1, 40))
def test_pure_is_the_worst_of_its_epsilon(epsilon: float, count: int) -> None:
    channel = ChannelLaw(k_ary(5, epsilon))
    for rule in (basic, zcdp, renyi):
        assert (
            rule([Release(channel, count)], 1e-6).epsilon
            <= rule([Release(PureLaw(channel.epsilon), count)], 1e-6).epsilon + 1e-4
        )


def test_the_law_of_a_bare_epsilon_is_that_of_binary_randomised_response() -> None:
    channel = ChannelLaw(k_ary(2, 0.8))
    bare, orders = PureLaw(channel.epsilon), np.array([1.01, 1.5, 2.0, 8.0, 100.0])
    assert np.allclose(bare.renyi(orders), channel.renyi(orders), rtol=1e-7)
    assert bare.rho == pytest.approx(channel.rho, rel=1e-4)
    assert np.allclose(bare.atoms().masses, channel.atoms().masses)


def test_atoms_of_a_table_dominate_every_pair() -> None:
    channel = skewed()
    atoms = channel_atoms(channel.worst_rows())
    gammas = np.exp(np.linspace(-1.2, 1.2, 97))
    ours = [np.clip(atoms.masses - gamma * atoms.masses * np.exp(-atoms.losses), 0, None).sum() for gamma in gammas]
    assert np.all(ours >= hockey_stick(channel.table, gammas) - 1e-12)
    assert np.allclose(ours, hockey_stick(channel.table, gammas), atol=1e-4)


def test_cell_totals_are_unbounded_where_participation_is_visible() -> None:
    spends = [Spend.through(k_ary(5, 1), name="a", count=3)]
    in_units = totals(spends)
    assert in_units["value"]["basic"].epsilon == pytest.approx(3, abs=1e-6)
    assert all(math.isinf(cost.epsilon) for cost in in_units["cell"].values())


def test_cell_totals_are_sums_where_participation_is_protected() -> None:
    symbols = ("no", "yes", None)
    channel = Channel(symbols, symbols, 32, "rotate", Rotate(2**31, 2**30))
    in_units = totals([Spend.through(channel, name="a", count=3)])
    assert in_units["cell"]["basic"].epsilon == pytest.approx(3 * math.log(2))
    assert in_units["vector"] == in_units["cell"]


def test_one_release_about_all_answers_costs_the_vector_as_often_as_it_has_answers() -> None:
    in_units = totals([Spend(JointLaw(0.5, "cell", True), "mf", 8)])
    assert in_units["cell"]["basic"].epsilon == pytest.approx(0.5)
    # Group privacy: the changes are not independent releases, so no rule may treat them as such.
    assert in_units["vector"]["zcdp"].epsilon >= in_units["vector"]["pld"].epsilon == pytest.approx(4, abs=0.01)


def test_unprotected_spends_are_not_summed() -> None:
    assert releases([Spend(Unprotected(), "weather", 3)], "vector") == ()
    assert all(cost.epsilon == 0 for cost in totals([Spend(Unprotected(), "weather")])["vector"].values())


@pytest.mark.parametrize("law", [PureLaw(0.5), JointLaw(0.5, "cell", True), GaussianLaw(0.3), Unprotected()])
def test_every_kind_survives_being_written_down(law: PureLaw | GaussianLaw) -> None:
    spend = Spend(law, "study", 3)
    assert Spend.from_json(spend.to_json()) == spend


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(InputError, match="kind"):
        Spend.from_json({"format": "crowdveil-spend/1", "kind": "quantum", "name": "x", "count": 1})


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_a_count_is_a_whole_number(count: int) -> None:
    with pytest.raises(InputError, match="count"):
        Spend(PureLaw(1), "x", count)


def oracle_pld(n_symbols: int, epsilon: float, step: float = 1e-4) -> privacy_loss_distribution.PrivacyLossDistribution:
    p_keep = math.exp(epsilon) / (math.exp(epsilon) + n_symbols - 1)
    p_lie = (1 - p_keep) / (n_symbols - 1)
    upper, lower = {0: math.log(p_keep), 1: math.log(p_lie)}, {0: math.log(p_lie), 1: math.log(p_keep)}
    if n_symbols > 2:
        upper[2] = lower[2] = math.log((n_symbols - 2) * p_lie)
    return privacy_loss_distribution.from_two_probability_mass_functions(
        lower, upper, value_discretization_interval=step
    )


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 100), (0.5, 50), (1.0, 20)])
def test_pld_agrees_with_dp_accounting_where_that_is_right(epsilon: float, count: int) -> None:
    theirs = oracle_pld(5, epsilon).self_compose(count).get_epsilon_for_delta(1e-6)
    assert pld([Release(ChannelLaw(k_ary(5, epsilon)), count)], 1e-6).epsilon == pytest.approx(theirs, abs=0.005)


def test_mixed_releases_agree_with_dp_accounting() -> None:
    theirs = oracle_pld(5, 1.0).self_compose(10)
    gaussians = privacy_loss_distribution.from_gaussian_mechanism(4.0, value_discretization_interval=1e-4)
    theirs = theirs.compose(gaussians.self_compose(5))
    parts = [Release(ChannelLaw(k_ary(5, 1.0)), 10), Release(GaussianLaw(0.25), 5)]
    assert pld(parts, 1e-6).epsilon == pytest.approx(theirs.get_epsilon_for_delta(1e-6), abs=0.005)


def test_renyi_agrees_with_dp_accounting_for_gaussians() -> None:
    accountant = RdpAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(4.0), 50)
    assert renyi([Release(GaussianLaw(0.25), 50)], 1e-6).epsilon == pytest.approx(
        accountant.get_epsilon(1e-6), rel=0.01
    )


def test_dp_accounting_forgets_the_count_of_randomised_response() -> None:
    """Documents why it is an oracle and no dependency: 50 releases of ε = 1 are reported as one."""
    event = dp_accounting.RandomizedResponseDpEvent(noise_parameter=2 / (math.e + 1), num_buckets=2)
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    wrong, looped = PLDAccountant(relation), PLDAccountant(relation)
    wrong.compose(event, 50)
    for _ in range(50):
        looped.compose(event)
    ours = pld([Release(PureLaw(1.0), 50)], 1e-6).epsilon
    assert wrong.get_epsilon(1e-6) == pytest.approx(1, abs=0.01)
    assert looped.get_epsilon(1e-6) == pytest.approx(ours, rel=0.001)


def test_dp_accounting_forgets_the_count_of_the_exponential_mechanism() -> None:
    """This wrong path stands in its repository, under the same version; the package 0.6.0 does not have the event."""
    event_type = getattr(dp_accounting, "ExponentialMechanismDpEvent", None)
    if event_type is None:
        assert not hasattr(dp_accounting.dp_event, "ExponentialMechanismDpEvent")
        return
    counted, looped = RdpAccountant(), RdpAccountant()
    counted.compose(event_type(1.0), 50)
    for _ in range(50):
        looped.compose(event_type(1.0))
    assert looped.get_epsilon(1e-6) > 5 * counted.get_epsilon(1e-6)


def test_dp_accounting_mixes_randomised_response_with_laplace_under_a_relation_that_is_too_kind() -> None:
    """Its event for randomised response needs a REPLACE relation and the one for Laplace refuses REPLACE_ONE, so only
    REPLACE_SPECIAL takes both: there one of two neighbours says nothing, and 12.83 is reported as 9.90.
    """
    relations = dp_accounting.NeighboringRelation
    answer = dp_accounting.RandomizedResponseDpEvent(noise_parameter=5 / (math.e + 4), num_buckets=5)
    laplace, gaussian = dp_accounting.LaplaceDpEvent(2.0), dp_accounting.GaussianDpEvent(4.0)
    with pytest.raises(dp_accounting.UnsupportedEventError):
        PLDAccountant(relations.REPLACE_ONE).compose(laplace)
    with pytest.raises(dp_accounting.UnsupportedEventError):
        PLDAccountant(relations.ADD_OR_REMOVE_ONE).compose(answer)
    kind = PLDAccountant(relations.REPLACE_SPECIAL)
    for _ in range(10):
        kind.compose(answer)
    kind.compose(laplace, 5)
    kind.compose(gaussian, 5)
    right = oracle_pld(5, 1.0, 1e-3).self_compose(10)
    for each in (
        privacy_loss_distribution.from_laplace_mechanism(2.0, value_discretization_interval=1e-3),
        privacy_loss_distribution.from_gaussian_mechanism(4.0, value_discretization_interval=1e-3),
    ):
        right = right.compose(each.self_compose(5))
    ours = [Release(ChannelLaw(k_ary(5, 1.0)), 10), Release(PureLaw(0.5), 5), Release(GaussianLaw(0.25), 5)]
    assert kind.get_epsilon(1e-6) == pytest.approx(9.90, abs=0.02)
    assert right.get_epsilon_for_delta(1e-6) == pytest.approx(12.83, abs=0.02)
    assert pld(ours, 1e-6).epsilon >= right.get_epsilon_for_delta(1e-6)


@pytest.mark.parametrize(
    ("epsilon", "count", "delta"),
    [(1e-6, 3, 1e-6), (700.0, 5, 1e-6), (0.5, 50, 1e-15), (1e-3, 10**6, 1e-6), (20.0, 1, 0.5)],
)
def test_extremes_stay_finite_and_within_the_plain_sum(epsilon: float, count: int, delta: float) -> None:
    parts = [Release(PureLaw(epsilon), count)]
    for rule in (renyi, pld):
        assert 0 <= rule(parts, delta).epsilon <= basic(parts, delta).epsilon


def test_every_rule_is_listed() -> None:
    assert list(RULES) == ["basic", "zcdp", "renyi", "pld"]
