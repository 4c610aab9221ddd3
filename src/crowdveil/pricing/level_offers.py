"""What to offer at each level of privacy: pay in proportion to the information of a report.

A report of a level with noise variance γ² has the information 1/(τ² + γ²) about the average opinion, τ² the variance of
opinions. With inverse-variance weights information adds up, so a wanted error needs 1/error² of it in all, from
whichever levels; a unit of it is worth the same wherever it is bought.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from crowdveil.errors import InputError


@dataclass(frozen=True, slots=True)
class LevelOffers:
    """Pay per level, how many workers to ask, and the expected error of the inverse-variance mean."""

    pay: dict[str, float]
    n_workers: int
    expected_error: float
    expected_cost: float


def offer_per_level(
    noise: Mapping[str, float],
    shares: Mapping[str, float],
    *,
    opinion_variance: float,
    budget: float,
    target_error: float | None = None,
    n_workers: int | None = None,
) -> LevelOffers:
    """Offers that spend `budget` on average, for a target error or a number of workers.

    `noise` is the variance γ² of a level's reports, `shares` how many of 100 % choose it.

    >>> offers = offer_per_level({"none": 0, "low": 9}, {"none": 0.5, "low": 0.5},
    ...                          opinion_variance=1, budget=11, n_workers=20)
    >>> offers.pay, round(offers.expected_error, 3)
    ({'none': 1.0, 'low': 0.1}, 0.302)
    """
    if (target_error is None) == (n_workers is None):
        raise InputError("give either a target error or a number of workers; got both or neither")
    if set(noise) != set(shares) or not noise:
        raise InputError("every level must have a noise variance and a share; got different levels")
    for name, number in (("opinion variance", opinion_variance), ("budget", budget), ("target error", target_error)):
        if number is not None and not 0 < number < math.inf:
            raise InputError(f"the {name} must be a number above 0; got {number}")
    if any(not 0 <= value < math.inf for value in (*noise.values(), *shares.values())):
        raise InputError("noise variances and shares must be numbers from 0 up", field="noise")
    if not math.isclose(sum(shares.values()), 1.0, abs_tol=1e-6):
        raise InputError(f"shares must sum to 1; got {sum(shares.values()):g}", field="share")
    information = {level: 1 / (opinion_variance + noise[level]) for level in noise}
    mean = sum(shares[level] * information[level] for level in noise)
    if n_workers is None:
        assert target_error is not None
        n_workers = math.ceil(1 / (target_error**2 * mean) - 1e-9)
    if n_workers < 1:
        raise InputError(f"the number of workers must be at least 1; got {n_workers}")
    total = n_workers * mean
    pay = {level: budget * information[level] / total for level in noise}
    cost = n_workers * sum(shares[level] * pay[level] for level in noise)
    return LevelOffers(pay, n_workers, 1 / math.sqrt(total), cost)
