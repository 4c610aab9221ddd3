"""Leaps arrive where plain sweeps do, sooner, and never where sweeps lead away from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from inference.families import reported
from numpy.typing import NDArray

from crowdveil import Answers, Choices
from crowdveil.inference import ChannelBP
from crowdveil.inference.acceleration import LARGEST_MAX_STEP, LOG_WEIGHTS, squarem_step
from crowdveil.inference.protocols import Parameters

REST = np.log([0.6, 0.3, 0.1]), np.log([0.8, 0.2])
LEAST = {name: np.full(len(logs), -20.0) for name, logs in zip(LOG_WEIGHTS, REST, strict=True)}


def normal(logs: NDArray[Any]) -> NDArray[Any]:
    shares: NDArray[Any] = logs - np.logaddexp.reduce(logs)
    return shares


def walked(rate: float, start: float, n_steps: int, *, leaps: bool) -> Parameters:
    """Steps that leave this share of the way to the resting point; each law starts so far from it."""
    here: dict[str, Any] = {
        name: normal(rest + start * np.arange(len(rest))) for name, rest in zip(LOG_WEIGHTS, REST, strict=True)
    }
    for _ in range(n_steps):
        step = {name: normal(rest + rate * (here[name] - rest)) for name, rest in zip(LOG_WEIGHTS, REST, strict=True)}
        here = step | (squarem_step(here, step, LEAST) if leaps else {})
    return here


def apart(laws: Parameters) -> float:
    pairs = zip(LOG_WEIGHTS, REST, strict=True)
    return float(sum(np.abs(np.exp(laws[name]) - np.exp(rest)).sum() for name, rest in pairs))


def nearly_all_alike(seed: int) -> Answers:
    rng = np.random.default_rng(seed)
    worker = np.argsort(rng.random((400, 30)), axis=1)[:, :10].ravel()
    answer = (rng.random(4000) > 0.97).astype(np.int64)
    ids = np.arange(30), np.arange(400)
    return Answers(worker, np.repeat(np.arange(400), 10), answer, *ids, Choices(("a", "b")))


def test_leaps_arrive_sooner() -> None:
    assert apart(walked(0.97, 0.2, 30, leaps=True)) < 1e-6
    assert apart(walked(0.97, 0.2, 30, leaps=False)) > 0.02


def test_a_leap_leads_away_from_where_steps_lead_away() -> None:
    start = apart(walked(1.02, 0.01, 0, leaps=False))
    leaping, stepping = (apart(walked(1.02, 0.01, 12, leaps=leaps)) for leaps in (True, False))
    assert leaping > stepping > start


def test_laws_after_a_leap_are_laws_and_no_share_falls_below_the_least() -> None:
    before = {name: normal(np.zeros(len(rest))) for name, rest in zip(LOG_WEIGHTS, REST, strict=True)}
    second = {name: normal(rest) for name, rest in zip(LOG_WEIGHTS, REST, strict=True)}
    third = {name: normal(2.1 * rest) for name, rest in zip(LOG_WEIGHTS, REST, strict=True)}
    least = {name: np.log(np.full(len(rest), 0.01)) for name, rest in zip(LOG_WEIGHTS, REST, strict=True)}
    found = squarem_step(second | squarem_step(before, second, least), third, least)
    for name in LOG_WEIGHTS:
        assert np.exp(found[name]).sum() == pytest.approx(1)
        assert np.exp(found[name]).min() > 0.009
        assert np.exp(found[name]).min() < np.exp(third[name]).min()


def test_after_a_leap_too_far_the_next_is_shorter_and_none_passes_the_most() -> None:
    here = walked(0.97, 0.5, 1, leaps=True)
    there = walked(0.97, 0.5, 2, leaps=False)
    shorter, longer = (
        squarem_step(here | {"reach": np.array([8.0, last])}, there, LEAST)["reach"][0] for last in (0, np.inf)
    )
    assert (shorter, longer) == (4, 16)
    assert walked(0.97, 0.5, 12, leaps=True)["reach"][0] == LARGEST_MAX_STEP


def squarem_step_from_three(rate: float, reach: float, rare: float = 0.0) -> tuple[NDArray[Any], Parameters]:
    """Three points towards the resting one, or away from it, and where the leap ends; `rare` swings by so much."""
    rest, away = np.concatenate(REST), 0.1 * np.array([0.3, 0.5, -0.6, 0.2, -0.9])
    if rare:
        rest[2], away[2] = -18.0, 0.0
    first, second, third = (rest + rate**power * away for power in range(3))
    third[2] += rare
    old = {LOG_WEIGHTS[0]: second[:3], LOG_WEIGHTS[1]: second[3:], "before": first, "reach": np.array([reach, 1e9])}
    return np.stack([rest, first, third]), squarem_step(
        old, {LOG_WEIGHTS[0]: third[:3], LOG_WEIGHTS[1]: third[3:]}, LEAST
    )


def shares_of(point: NDArray[Any]) -> NDArray[Any]:
    return np.exp(np.concatenate([normal(point[:3]), normal(point[3:])]))


def ends_at(laws: Parameters) -> NDArray[Any]:
    return np.exp(np.concatenate([laws[name] for name in LOG_WEIGHTS]))


def test_where_steps_shrink_by_one_factor_a_leap_ends_where_they_would() -> None:
    (rest, _, _), laws = squarem_step_from_three(0.5, 4)
    np.testing.assert_allclose(ends_at(laws), shares_of(rest), rtol=1e-12)
    assert laws["reach"][0] == 8
    assert 0 < laws["reach"][1] < 1


def test_a_leap_is_no_longer_than_its_reach_and_no_shorter_than_a_step() -> None:
    (rest, first, _), laws = squarem_step_from_three(0.97, 2)
    # The reach is now four: twice as many steps forward, and sixteen times the bend, which is .03 of a step back.
    np.testing.assert_allclose(ends_at(laws), shares_of(first + (8 - 0.48) * 0.03 * (rest - first)), rtol=1e-12)
    (_, _, third), laws = squarem_step_from_three(-0.5, 4)
    np.testing.assert_allclose(ends_at(laws), shares_of(third), rtol=1e-12)


def test_steps_that_grow_neither_lengthen_the_reach_nor_set_a_measure() -> None:
    reach, last = squarem_step_from_three(1.5, 4)[1]["reach"]
    assert reach == 4
    assert last > 1e300


def test_a_share_that_is_next_to_nothing_has_no_say_in_how_far_a_leap_goes() -> None:
    (rest, _, _), laws = squarem_step_from_three(0.5, 4, rare=1.0)
    np.testing.assert_allclose(ends_at(laws), shares_of(rest), atol=1e-4)


def test_answers_nearly_all_alike_come_to_rest() -> None:
    """Plain sweeps had not after 200: learned classes creep past a point where they almost rest."""
    estimate = ChannelBP().fit(reported(nearly_all_alike(1), 0.5, 3))
    assert estimate.converged
    assert estimate.iterations < 120


def test_leaps_and_plain_sweeps_come_to_rest_at_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = reported(nearly_all_alike(1), 0.5, 3)
    method = ChannelBP(tol=1e-8, max_iter=2000, precision="float64")
    leaping = method.fit(reports)
    monkeypatch.setattr("crowdveil.inference.models.worker_type.squarem_step", lambda *_: {})
    plain = method.fit(reports)
    assert plain.converged
    assert leaping.iterations < plain.iterations / 2
    np.testing.assert_allclose(leaping.posterior, plain.posterior, atol=1e-5)
