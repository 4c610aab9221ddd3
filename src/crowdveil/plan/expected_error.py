"""The error to expect: calculated first, then simulated; and where that of a single study will fall."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import Scale
from crowdveil.plan.density_evolution import Prediction, predict_parts
from crowdveil.plan.design import CrowdPart, Setting
from crowdveil.plan.lower_bound import scale_floor
from crowdveil.plan.monte_carlo import PRECISION, WORK, simulate, study_work

# How far the calculation is off, as a part of itself: what remains of it where a simulation is too short to tell.
_TRUST = 0.2
# The same for numbers that no simulation confirms, as simulations show, and how far single studies lie apart then.
_UNSIMULATED, _APART = 0.32, 0.45
# What `channel-em` adds to an ideal reader's error, in steps of the scale.
_ADDED = 0.015
_STUDIES, _FEWEST_WORKERS, _SMALLER_EFFORT = 3, 200, 0.5
_DRAWS = 20_000


@dataclass(frozen=True, slots=True)
class Expectation:
    """The mean error, how sure that is, how much it differs between studies, and how many studies were simulated."""

    error: float
    standard_error: float
    between_studies: float
    n_studies: int
    at_most: float


def recommended_method(setting: Setting, *, population: bool) -> str:
    """The method that is recommended, and simulated with."""
    if population:
        return "population-mean" if isinstance(setting.domain, Scale) else "frequency"
    return "channel-em" if isinstance(setting.domain, Scale) else "channel-bp"


def expect_error(
    setting: Setting, parts: Sequence[CrowdPart], calculated: Prediction, *, population: bool, effort: float
) -> Expectation:
    """Both together, weighed by how sure each is; the calculation alone where the study is too large to simulate."""
    simulated = simulate_error(setting, parts, calculated, population=population, effort=effort)
    if simulated is not None:
        return simulated
    if isinstance(setting.domain, Scale) and not population:
        return _expect_scale_error(setting, parts, calculated, effort)
    between, doubt = calculated.spread / math.sqrt(setting.n_questions), calculated.standard_error
    return Expectation(calculated.error, doubt, between, 0, calculated.error * (1 + _TRUST) + 3 * doubt)


def simulate_error(
    setting: Setting,
    parts: Sequence[CrowdPart],
    calculated: Prediction,
    *,
    population: bool,
    effort: float,
    precision: float = PRECISION,
) -> Expectation | None:
    """What simulations make of the calculation; None without any, or where the study is too large for them."""
    method = recommended_method(setting, population=population)
    played = None
    if effort > 0:
        played = simulate(setting, parts, method, population=population, effort=effort, precision=precision)
    if played is None:
        return None
    # A calculation that a simulation contradicts is off by what lies between them, however sure it is of itself: where
    # mistakes are rare it may have seen none, and nothing of what not knowing the workers costs.
    apart = abs(played.error - calculated.error)
    doubt = max(math.hypot(_TRUST * calculated.error, calculated.standard_error), apart)
    weight = doubt**2 / (doubt**2 + played.standard_error**2) if doubt > 0 else 1.0
    error = weight * played.error + (1 - weight) * calculated.error
    sure = math.sqrt(weight) * played.standard_error
    return Expectation(error, sure, played.between_studies, played.n_studies, max(error + 3 * sure, played.at_most))


def _expect_scale_error(
    setting: Setting, parts: Sequence[CrowdPart], calculated: Prediction, effort: float
) -> Expectation:
    """A calculation with what the method adds to it, which more workers do not take away.

    `channel-em` learns the crowd with truths on a grid of its own and from the questions there are, and reads truths
    through that crowd. It errs by some hundredths of a step however many report, where an ideal reader would not. How
    much it is here, a simulation of fewer workers tells; without one it is taken to be what it was in simulations.
    """
    assert isinstance(setting.domain, Scale)
    error = math.hypot(calculated.error, _ADDED * float(setting.domain.step))
    between = _APART * error
    smaller = _smaller(setting, parts, effort)
    played = (
        None if smaller is None else simulate(*smaller, recommended_method(setting, population=False), effort=effort)
    )
    if smaller is not None and played is not None:
        ideal = predict_parts(*smaller, effort=_SMALLER_EFFORT).error
        added = math.sqrt(max(played.error**2 - ideal**2, 0.0))
        # Where the method does better than calculated, it is taken to do so in proportion.
        error = math.hypot(calculated.error, added) if added > 0 else calculated.error * played.error / ideal
        between = played.between_studies
    error = max(error, least_promise(setting))
    sampling_spread = calculated.spread / math.sqrt(setting.n_questions)
    doubt = math.hypot(_UNSIMULATED * error, calculated.standard_error)
    return Expectation(error, doubt, max(sampling_spread, min(between, error)), 0, error + 3 * doubt)


def least_promise(setting: Setting) -> float:
    """The mean absolute error of a normal one with the floor's standard deviation, what is known beforehand counted."""
    assert isinstance(setting.domain, Scale)
    prior_information = 12 / setting.domain.range**2
    return math.sqrt(2 / math.pi) / math.sqrt(1 / scale_floor(setting) ** 2 + prior_information)


def _smaller(setting: Setting, parts: Sequence[CrowdPart], effort: float) -> tuple[Setting, list[CrowdPart]] | None:
    """The same study with as few of its workers, then of its questions, as let it be simulated some times."""
    share = effort * WORK / _STUDIES / study_work(setting, parts, population=False)
    if not 0 < share < 1:
        return None
    n_workers = min(max(math.ceil(setting.n_workers * share), _FEWEST_WORKERS), setting.n_workers)
    n_questions = max(math.floor(setting.n_questions * share * setting.n_workers / n_workers), 1)
    part = n_workers / setting.n_workers
    fewer = [replace(crowd_part, n_workers=math.ceil(part * crowd_part.n_workers)) for crowd_part in parts]
    small = replace(setting, n_workers=n_workers, n_questions=min(n_questions, setting.n_questions))
    return small, fewer


def interval(setting: Setting, expectation: Expectation, *, population: bool) -> tuple[float, float]:
    """Where the error of one study falls 95 times in 100, the planner's doubt included; never beyond the scale."""
    rng = np.random.default_rng(0)
    variance, largest = expectation.between_studies**2 + expectation.standard_error**2, setting.largest_error
    if expectation.error <= 0 or variance <= 0:
        return min(expectation.error, largest), min(expectation.error, largest)
    if population or isinstance(setting.domain, Scale):
        shape = expectation.error**2 / variance
        errors = rng.gamma(shape, expectation.error / shape, _DRAWS)
    else:
        errors = _draw_error_rates(expectation.error, variance, setting.n_questions, rng)
    low, high = np.minimum(np.quantile(errors, (0.025, 0.975)), largest)
    return float(low), float(high)


def _draw_error_rates(rate: float, variance: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Mistakes among n questions: binomial, with a rate that itself varies from study to study if they differ more."""
    even = rate * (1 - rate)
    beyond = (variance - even / n) / max(1 - 1 / n, 1e-9)
    rates = np.full(_DRAWS, rate)
    if 1e-12 < beyond < even:
        size = even / beyond - 1
        rates = rng.beta(rate * size, (1 - rate) * size, _DRAWS)
    return rng.binomial(n, rates) / n
