"""Density evolution against whole studies that an ideal reader reads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from plan.ideal import ideal_error

from crowdveil import Choices, Scale
from crowdveil.mechanisms import mechanism
from crowdveil.plan import CrowdSkill, Setting, predict

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
    setting = Setting(domain, epsilon, n_workers, share, CrowdSkill.named(skill, domain), 50, protect)
    channel = mechanism(name, epsilon=epsilon, protect_participation=protect).channel(domain)
    errors = [ideal_error(setting, channel, rng) for _ in range(20)]
    predicted = predict(setting, channel)
    noise = math.hypot(float(np.std(errors)) / math.sqrt(len(errors)), predicted.standard_error)
    assert predicted.error == pytest.approx(np.mean(errors), abs=0.1 * np.mean(errors) + 4 * noise)
    assert noise < 0.2 * np.mean(errors)
