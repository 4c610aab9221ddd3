"""Prices: nobody gains by a false bid, nobody loses by a true one, no budget is passed, and factors hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from crowdveil.errors import InputError
from crowdveil.pricing import Bid, FairQuery, FixedAccuracy, Purchase, SingleMinded, TakeItOrLeaveIt, offer_per_level
from crowdveil.pricing.ghosh_roth import ERROR_PER_WORKER_LEFT_OUT

Auction = FairQuery | FixedAccuracy
FAIR_QUERIES = tuple(FairQuery(budget) for budget in ("0.5", 1, "2.5", 7, 40))
AUCTIONS: tuple[Auction, ...] = (*FAIR_QUERIES, FixedAccuracy(1.6), FixedAccuracy(3.3))
COSTS = (0, 1, 2, 4)
BIDS = tuple(Fraction(step, 2) for step in range(11))


def bids_of(costs: tuple[Fraction | int, ...], epsilon: tuple[Fraction, ...] | None = None) -> list[Bid]:
    return [Bid(str(row), Fraction(cost), None if epsilon is None else epsilon[row]) for row, cost in enumerate(costs)]


def utility(purchase: Purchase, worker: int, cost: Fraction | int, *, per_epsilon: bool) -> Fraction:
    if str(worker) not in purchase.winners:
        return Fraction(0)
    row = purchase.winners.index(str(worker))
    return purchase.payments[row] - cost * (purchase.epsilon[row] if per_epsilon else 1)


def profiles(n: int) -> Iterator[tuple[int, ...]]:
    return itertools.product(COSTS, repeat=n)


@pytest.mark.parametrize("auction", AUCTIONS, ids=str)
def test_no_bid_is_better_than_the_true_cost_and_no_truth_loses(auction: Auction) -> None:
    for costs in profiles(4):
        truth = auction.run(bids_of(costs))
        for worker, cost in enumerate(costs):
            honest = utility(truth, worker, cost, per_epsilon=True)
            assert honest >= 0
            for bid in BIDS:
                lie = auction.run(bids_of((*costs[:worker], bid, *costs[worker + 1 :])))
                assert utility(lie, worker, cost, per_epsilon=True) <= honest, (costs, worker, bid)


@pytest.mark.parametrize("budget", ["0.5", 1, "2.5", 7, 40])
def test_fair_query_stays_in_its_budget_and_no_equal_price_buys_more(budget: float) -> None:
    for costs in profiles(5):
        purchase = FairQuery(budget).run(bids_of(costs))
        k, n, money = len(purchase.winners), len(costs), Fraction(str(budget))
        assert purchase.total <= money
        assert len(set(purchase.payments)) <= 1
        # With the same pay for all, more sellers at their own ε = 1/(n − m) ask for more than the budget.
        order = sorted(costs)
        assert all(Fraction(order[m - 1] * m, n - m) > money for m in range(k + 1, n))
        assert not purchase.winners or max(costs[int(each)] for each in purchase.winners) == order[k - 1]


def test_fixed_accuracy_pays_the_lowest_losing_bid_and_has_the_error_it_says() -> None:
    purchase = FixedAccuracy(3.3).run(bids_of((5, 1, 4, 2, 3)))
    assert purchase.winners == ("1", "3", "4")
    assert set(purchase.payments) == {Fraction(4, 2)}
    assert purchase.error is not None
    assert purchase.error <= 3.3
    # All but r sell 1/r; half of the r is a guess, and Laplace noise of scale r exceeds r ln 3 in a third of the cases.
    left_out = 5 - len(purchase.winners)
    assert purchase.epsilon[0] == Fraction(1, left_out)
    assert math.exp(-(purchase.error - left_out / 2) / left_out) == pytest.approx(1 / 3)
    # The lower bound of Theorem 3.1 is r/4.
    assert purchase.error / (left_out / 4) == pytest.approx(4 * ERROR_PER_WORKER_LEFT_OUT)


def test_an_accuracy_that_nobody_can_sell_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        FixedAccuracy(1.0).run(bids_of((1, 2, 3)))
    assert FixedAccuracy(100.0).run(bids_of((1, 2, 3))).winners == ()


EPSILONS = tuple(Fraction(number) for number in (1, 2, 3))
CENTS = tuple(Fraction(cents, 100) for cents in (1, 2, 4, 7))


@pytest.mark.parametrize("budget", ["0.02", "0.05", "0.1"])
def test_single_minded_bidders_gain_by_no_lie_and_are_paid_within_the_budget(budget: str) -> None:
    lies = [Fraction(cents, 100) for cents in range(12)]
    auction = SingleMinded(budget)
    for epsilon in itertools.product(EPSILONS, repeat=3):
        for costs in itertools.product(CENTS, repeat=3):
            truth = auction.run(bids_of(costs, epsilon))
            assert truth.total <= Fraction(budget)
            for worker, cost in enumerate(costs):
                honest = utility(truth, worker, cost, per_epsilon=False)
                assert honest >= 0
                for bid in lies:
                    lie = auction.run(bids_of((*costs[:worker], bid, *costs[worker + 1 :]), epsilon))
                    assert utility(lie, worker, cost, per_epsilon=False) <= honest, (epsilon, costs, worker, bid)


def test_single_minded_buys_its_share_of_the_optimum_within_the_budget() -> None:
    rng = np.random.default_rng(20261118)
    for _ in range(400):
        n = int(rng.integers(1, 8))
        costs = tuple(Fraction(int(cents), 100) for cents in rng.integers(1, 60, n))
        epsilon = tuple(Fraction(int(tenths), 10) for tenths in rng.integers(1, 40, n))
        budget = Fraction(int(rng.integers(10, 120)), 100)
        groups = [group for size in range(n + 1) for group in itertools.combinations(range(n), size)]
        paid = [group for group in groups if sum((costs[row] for row in group), Fraction(0)) <= budget]
        optimum = max(sum((epsilon[row] for row in group), Fraction(0)) for group in paid)
        purchase = SingleMinded(budget).run(bids_of(costs, epsilon))
        assert purchase.total <= budget
        assert all(costs[int(w)] <= pay for w, pay in zip(purchase.winners, purchase.payments, strict=True))
        assert float(sum(purchase.epsilon)) * (2 + math.sqrt(2)) >= float(optimum)


@pytest.mark.parametrize("seed", range(20))
def test_take_it_or_leave_it_errs_and_pays_no_more_than_it_says(seed: int) -> None:
    """People with a yes ask for ten times as much: those who accept early are not like the others."""
    rng = np.random.default_rng(seed)
    offers = TakeItOrLeaveIt(error=0.1, epsilon=0.5, first_price=0.01, highest_price=10.0)
    yes = rng.random(400_000) < 0.3
    costs = rng.lognormal(-3, 0.5, len(yes)) * np.where(yes, 10, 1)
    people, paid = rng.permutation(len(yes)), 0.0
    for number, price in enumerate(offers.prices):
        asked = people[number * offers.n_asked : (number + 1) * offers.n_asked]
        accepts = costs[asked] <= price
        paid += float(accepts.sum()) * price
        noisy = accepts.sum() + rng.laplace(0, offers.noise_scale)
        if noisy >= offers.enough:
            break
    counted = yes[asked][accepts].sum() + rng.laplace(0, offers.noise_scale)
    assert abs(offers.estimate(counted, noisy) - yes.mean()) <= offers.error
    enough = float(np.quantile(costs, 1 - offers.error / 8))
    assert price <= offers.growth * enough
    assert paid <= offers.growth**2 / (offers.growth - 1) * offers.n_asked * enough
    assert paid <= offers.most_paid(number + 1)


def test_no_strategy_beats_accepting_what_covers_the_cost() -> None:
    """Nobody is asked twice, so a strategy is a set of prices to accept; the round in which one is asked is chance."""
    prices = TakeItOrLeaveIt(error=0.1, epsilon=1.0, first_price=1.0, highest_price=5.0).prices
    strategies = [set(chosen) for size in range(len(prices) + 1) for chosen in itertools.combinations(prices, size)]
    for cost, offered in itertools.product(np.arange(0, 6.5, 0.5), prices):
        honest = max(offered - cost, 0.0) if cost <= offered else 0.0
        assert honest >= 0
        assert all((offered - cost if offered in accepted else 0.0) <= honest for accepted in strategies)


def test_prices_grow_to_the_highest_and_no_further() -> None:
    offers = TakeItOrLeaveIt(error=0.1, epsilon=1.0, first_price=1.0, highest_price=5.0)
    assert offers.prices == (1.0, 2.0, 4.0, 5.0)
    assert TakeItOrLeaveIt(error=0.1, epsilon=1.0, first_price=2.0, highest_price=2.0).prices == (2.0,)
    with pytest.raises(InputError, match="highest_price"):
        TakeItOrLeaveIt(error=0.1, epsilon=1.0, first_price=2.0, highest_price=1.0)


def test_offers_per_level_spend_the_budget_for_the_wanted_error() -> None:
    noise, shares = {"none": 0.0, "low": 9.0, "high": 144.0}, {"none": 0.2, "low": 0.5, "high": 0.3}
    offers = offer_per_level(noise, shares, opinion_variance=1.0, budget=50.0, target_error=0.2)
    assert offers.expected_error <= 0.2
    assert offers.expected_cost == pytest.approx(50.0)
    assert offers.pay["none"] / offers.pay["low"] == pytest.approx(10.0)
    fewer = offer_per_level(noise, shares, opinion_variance=1.0, budget=50.0, n_workers=offers.n_workers - 1)
    assert fewer.expected_error > 0.2


@pytest.mark.parametrize(
    "wrong",
    [
        {"target_error": 0.1, "n_workers": 5},
        {},
        {"target_error": -1.0},
        {"n_workers": 0},
        {"n_workers": 5, "budget": math.nan},
    ],
)
def test_offers_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    settings = {"opinion_variance": 1.0, "budget": 5.0} | wrong
    with pytest.raises(InputError):
        offer_per_level({"low": 1.0}, {"low": 1.0}, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", [0, -1, "nan", "many", "1/0", "1e999999999", "1e-999999999", math.inf])
def test_a_budget_that_is_no_amount_is_refused(budget: float | str) -> None:
    for auction in (FairQuery(budget), SingleMinded(budget)):
        with pytest.raises(InputError, match="budget"):
            auction.run(bids_of((1, 2), (Fraction(1), Fraction(1))))


def test_bids_that_repeat_a_worker_or_are_no_cents_are_refused() -> None:
    one = Bid("a", Fraction(1), Fraction(1))
    with pytest.raises(InputError, match="bid once"):
        FairQuery(1).run([one, one])
    with pytest.raises(InputError, match="cents"):
        SingleMinded(1).run([Bid("a", Fraction(1, 3), Fraction(1))])
