"""Density evolution against whole studies that an ideal reader reads."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from plan.ideal import ideal_error

from crowdveil import Choices, Scale
from crowdveil.mechanisms import mechanism
from crowdveil.plan import CrowdSkill, Setting, predict
from crowdveil.plan.lower_bound import scale_floor

YES, FOUR, STARS = Choices(("no", "yes")), Choices(tuple("abcd")), Scale(1, 5)


@pytest.mark.parametrize(
    ("domain", "epsilon", "n_workers", "share", "skill", "protect", "name"),
    [
        (YES, 1.0, 40, 1.0, "mixed", False, "randomized-response"),
        (YES, 2.0, 60, 0.5, "spammers", False, "randomized-response"),
        (YES, 1.5, 25, 1.0, "0.5..0.9", False, "randomized-response"),
        (FOUR, 1.5, 80, 0.5, "mixed", True, "randomized-response"),
        (FOUR, 0.7, 60, 1.0, "mixed", False, "subset-selection"),
        (STARS, 1.0, 60, 1.0, "mixed", False, "randomized-response"),
        (STARS, 2.0, 60, 0.5, "good", False, "optimal-scale"),
    ],
)
def test_the_prediction_is_what_an_ideal_reader_of_whole_studies_gets(
    domain: Choices | Scale, epsilon: float, n_workers: int, share: float, skill: str, protect: bool, name: str
) -> None:
    rng = np.random.default_rng(20)
    setting = Setting(domain, epsilon, n_workers, share, CrowdSkill.from_name(skill, domain), 50, protect)
    channel = mechanism(name, epsilon=epsilon, protect_participation=protect).channel(domain)
    errors = [ideal_error(setting, channel, rng) for _ in range(20)]
    predicted = predict(setting, channel)
    noise = math.hypot(float(np.std(errors)) / math.sqrt(len(errors)), predicted.standard_error)
    assert predicted.error == pytest.approx(np.mean(errors), abs=0.1 * np.mean(errors) + 4 * noise)
    assert noise < 0.2 * np.mean(errors)


@pytest.mark.parametrize(
    ("domain", "epsilon", "n_workers", "skill"),
    [(STARS, 2.0, 12_000, "good"), (STARS, 3.0, 12_000, "expert"), (Scale(0, 9), 3.0, 30_000, "good")],
)
def test_a_number_is_not_known_exactly_because_a_grid_is_coarse(
    domain: Scale, epsilon: float, n_workers: int, skill: str
) -> None:
    setting = Setting(domain, epsilon, n_workers, 1.0, CrowdSkill.from_name(skill, domain), 60)
    channel = mechanism("randomized-response", epsilon=epsilon).channel(domain)
    predicted = predict(setting, channel, effort=0.2)
    assert predicted.error > math.sqrt(2 / math.pi) * scale_floor(setting) - 4 * predicted.standard_error
    assert predicted.error < 0.05


def test_ten_times_the_workers_err_less_by_the_root_of_ten_far_below_the_grid() -> None:
    crowd = CrowdSkill.from_name("0.6", STARS)
    channel = mechanism("randomized-response", epsilon=3.0).channel(STARS)
    few, many = (
        predict(
            Setting(STARS, 3.0, n_workers, 1.0, replace(crowd, believed=np.maximum(crowd.shares, 1e-9)), 60),
            channel,
            effort=0.5,
        )
        for n_workers in (2_000, 20_000)
    )
    assert few.error / many.error == pytest.approx(math.sqrt(10), rel=0.15)
