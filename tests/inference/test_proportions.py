"""Intervals of shares: their moments are those of the reports, and their ends are where the test turns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaincinv, ndtri

from crowdveil import Choices
from crowdveil.inference.uncertainty.proportions import least_of_chosen, moments, score_interval
from crowdveil.mechanisms import mechanism

ABC = Choices(("a", "b", "c"))


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("name", ["randomized-response", "subset-selection"])
def test_moments_are_those_of_reports_under_the_share(name: str, hidden: bool) -> None:
    channel = mechanism(name, epsilon=1.5, protect_participation=hidden).channel(ABC)
    law, given, n_reports = np.array([0.5, 0.3, 0.2]), 0.7 if hidden else 1.0, 8.0
    found = moments(law[None], np.array([given]), np.array([[n_reports]]), [channel])
    chance = (np.append(law * given, 1 - given) if hidden else law) @ channel.table
    votes = channel.votes[:, :3]
    answered = votes.sum(axis=1) if hidden else np.ones(len(votes))
    for option, share in enumerate(law):
        error = votes[:, option] - share * answered
        assert chance @ error == pytest.approx(0, abs=1e-8)
        variance, third = (each[0, option] for each in found.at(law[None]))
        assert variance == pytest.approx(n_reports * chance @ error**2)
        assert third == pytest.approx(n_reports * chance @ error**3)


def without_privacy(votes: np.ndarray) -> tuple[np.ndarray, ...]:
    total = votes.sum(axis=1)
    law = (votes + 1) / (total[:, None] + votes.shape[1])
    channel = mechanism("none").channel(Choices(tuple("abcdefghij"[: votes.shape[1]])))
    found = moments(law, np.ones(len(votes)), total[None], [channel])
    return *score_interval(votes, total[:, None], found), least_of_chosen(votes, total[:, None], found, votes.argmax(1))


def test_with_many_reports_it_is_the_normal_interval_and_with_few_it_is_between_that_and_the_exact_one() -> None:
    many = np.array([[4000.0, 6000.0]])
    low, high, least = without_privacy(many)
    reach = ndtri(0.975) * np.sqrt(0.24 / 10_000)
    np.testing.assert_allclose([low[0, 0], high[0, 0]], [0.4 - reach, 0.4 + reach], atol=2e-4)
    assert least[0] == pytest.approx(0.6 - ndtri(1 - 0.0125) * np.sqrt(0.24 / 10_000), abs=2e-4)
    few = np.array([[float(n), 10.0 - n] for n in range(1, 10)])
    low, high, _ = without_privacy(few)
    exact = betaincinv(few[:, 0], 11 - few[:, 0], 0.025), betaincinv(few[:, 0] + 1, 10 - few[:, 0], 0.975)
    assert (low[:, 0] >= exact[0]).all()
    assert (high[:, 0] <= exact[1]).all()
    np.testing.assert_allclose(low[:, 0], exact[0], atol=0.06)


def test_the_ends_are_where_the_votes_are_as_far_off_as_variance_and_skewness_allow() -> None:
    votes = np.array([[n, 100 - n] for n in (4.0, 30.0, 50.0, 83.0)])
    low, high, _ = without_privacy(votes)
    z = ndtri(0.975)
    for end, side in ((low, -1), (high, 1)):
        # n answers of a share p vary by n·p(1 − p), and their third moment is that times 1 − 2p.
        allowed = z * np.sqrt(100 * end * (1 - end)) - side * (z**2 - 1) / 6 * (1 - 2 * end)
        np.testing.assert_allclose(side * (100 * end - votes), allowed, rtol=1e-6)


def test_an_option_that_nobody_named_may_still_be_held_and_one_that_all_named_need_not_be_held_by_all() -> None:
    low, high, least = without_privacy(np.array([[3.0, 0.0, 0.0, 0.0]]))
    assert low[0, 1] == 0
    assert 0.4 < high[0, 1] < 0.8
    assert high[0, 0] == 1
    assert 0.02 < least[0] < low[0, 0] < 0.6


def noisy(votes: np.ndarray, n_reports: float, *, epsilon: float) -> tuple[np.ndarray, ...]:
    channel = mechanism("randomized-response", epsilon=epsilon).channel(ABC)
    found = moments(
        np.full((len(votes), 3), 1 / 3), np.ones(len(votes)), np.full((1, len(votes)), n_reports), [channel]
    )
    mass = np.full((len(votes), 1), n_reports)
    return *score_interval(votes, mass, found), least_of_chosen(votes, mass, found, votes.argmax(1))


def test_a_raw_share_far_outside_0_and_1_still_has_an_interval_as_wide_as_the_noise() -> None:
    inside = np.array([[100.0, 0.0, 0.0]])
    outside = np.array([[190.0, -60.0, -30.0], [1000.0, -600.0, -300.0]])
    at_the_ends = noisy(inside, 100.0, epsilon=1.0)
    for low, high, least in (noisy(each[None], 100.0, epsilon=1.0) for each in outside):
        np.testing.assert_allclose(low, at_the_ends[0])
        np.testing.assert_allclose(high, at_the_ends[1])
        np.testing.assert_allclose(least, at_the_ends[2])
        assert (high - low > 0.2).all()


def test_intervals_of_shares_at_the_boundary_hold_the_truth_as_often_as_they_say() -> None:
    """An option that nobody holds: half of all raw shares are below 0."""
    channel = mechanism("randomized-response", epsilon=0.5).channel(ABC)
    law, n_reports = np.array([0.6, 0.4, 0.0]), 60
    counts = np.random.default_rng(19).multinomial(n_reports, law @ channel.table, size=2000)
    votes = counts @ channel.votes
    assert 0.4 < (votes[:, 2] < 0).mean() < 0.6
    low, high, _ = noisy(votes, float(n_reports), epsilon=0.5)
    assert (high > low + 0.1).all()
    assert (((low <= law) & (law <= high)).mean(axis=0) > 0.94).all()
