"""The error to expect: calculated first, then rehearsed; and where that of a single study will fall."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import Scale
from crowdveil.plan.evolution import Prediction
from crowdveil.plan.rehearsal import PRECISION, rehearse
from crowdveil.plan.setting import CrowdPart, Setting

# How far the calculation is off, as a part of itself: what remains of it where a rehearsal is too short to tell.
_TRUST = 0.2
_DRAWS = 20_000


@dataclass(frozen=True, slots=True)
class Expectation:
    """The mean error, how sure that is, how much it differs between studies, and how many studies were rehearsed."""

    error: float
    standard_error: float
    between_studies: float
    n_studies: int
    at_most: float


def method_of(setting: Setting, *, population: bool) -> str:
    """The method that is recommended, and rehearsed with."""
    if population:
        return "population-mean" if isinstance(setting.domain, Scale) else "frequency"
    return "channel-em" if isinstance(setting.domain, Scale) else "channel-bp"


def expected(
    setting: Setting,
    parts: Sequence[CrowdPart],
    calculated: Prediction,
    *,
    population: bool,
    effort: float,
    precision: float = PRECISION,
) -> Expectation:
    """Both together, weighed by how sure each is; the calculation alone where the study is too large to rehearse."""
    method = method_of(setting, population=population)
    played = None
    if effort > 0:
        played = rehearse(setting, parts, method, population=population, effort=effort, precision=precision)
    if played is None:
        between, doubt = calculated.spread / math.sqrt(setting.n_questions), calculated.standard_error
        return Expectation(calculated.error, doubt, between, 0, calculated.error * (1 + _TRUST) + 3 * doubt)
    # A calculation that a rehearsal contradicts is off by what lies between them, however sure it is of itself: where
    # mistakes are rare it may have seen none, and nothing of what not knowing the workers costs.
    apart = abs(played.error - calculated.error)
    doubt = max(math.hypot(_TRUST * calculated.error, calculated.standard_error), apart)
    weight = doubt**2 / (doubt**2 + played.standard_error**2) if doubt > 0 else 1.0
    error = weight * played.error + (1 - weight) * calculated.error
    sure = math.sqrt(weight) * played.standard_error
    return Expectation(error, sure, played.between_studies, played.n_studies, max(error + 3 * sure, played.at_most))


def interval(setting: Setting, found: Expectation, *, population: bool) -> tuple[float, float]:
    """Where the error of one study falls 95 times in 100, the planner's own doubt included."""
    rng = np.random.default_rng(0)
    variance = found.between_studies**2 + found.standard_error**2
    if found.error <= 0 or variance <= 0:
        return found.error, found.error
    if population or isinstance(setting.domain, Scale):
        shape = found.error**2 / variance
        drawn = rng.gamma(shape, found.error / shape, _DRAWS)
    else:
        drawn = _counted(found.error, variance, setting.n_questions, rng)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(low), float(high)


def _counted(rate: float, variance: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Mistakes among n questions: binomial, with a rate that itself varies from study to study if they differ more."""
    even = rate * (1 - rate)
    beyond = (variance - even / n) / max(1 - 1 / n, 1e-9)
    rates = np.full(_DRAWS, rate)
    if 1e-12 < beyond < even:
        size = even / beyond - 1
        rates = rng.beta(rate * size, (1 - rate) * size, _DRAWS)
    return rng.binomial(n, rates) / n
