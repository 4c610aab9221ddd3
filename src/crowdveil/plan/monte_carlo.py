"""The planned study itself, drawn and read by the very method that is recommended, as often as it takes to be sure.

Two things keep it short. A question's error is not counted but computed from what its reports leave open (Rao and
Blackwell), and it is compared with that of a reader who knows every worker, whose mean error over all studies is
quickly found from counts alone (a control variate). What remains to be simulated is what not knowing them costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import Scale
from crowdveil.inference import method
from crowdveil.plan.design import CrowdPart, Setting
from crowdveil.plan.oracle import log_evidence, oracle_error
from crowdveil.plan.population import prior_spread
from crowdveil.plan.study_simulator import DrawnStudy, draw_study
from crowdveil.progress import heard_by, tell

Floats = NDArray[np.float64]

PRECISION = 0.02
RESOLUTION = 0.002
"""An error below this part of a guess's is as good as none: one wrong among a thousand questions of two options."""
_EASY, _EASY_PRECISION = 0.02, 0.05
WORK = 4_000_000.0
_OVERHEAD = 4_000.0
_FEWEST, _MOST = 8, 1000
_RARE, _ENOUGH = 0.01, 50


@dataclass(frozen=True, slots=True)
class Simulation:
    """The mean error of a question, how sure that is, and the standard deviation from one study to the next.

    `unseen` is the rate of a mistake that happens once in all the simulated questions: one three times as frequent
    would have been seen 19 times in 20, and the standard error knows nothing of what was not seen.
    """

    error: float
    standard_error: float
    between_studies: float
    n_studies: int
    unseen: float = 0.0

    @property
    def at_most(self) -> float:
        """What the mean error does not pass, as far as the simulations show."""
        return self.error + 3 * (self.standard_error + self.unseen)


def simulate(
    setting: Setting,
    parts: Sequence[CrowdPart],
    name: str,
    *,
    population: bool = False,
    effort: float = 1.0,
    precision: float = PRECISION,
    seed: int = 1,
) -> Simulation | None:
    """Draw studies until the relative standard error is small or the effort spent; None where one is too large."""
    rng = np.random.default_rng(seed)
    work = study_work(setting, parts, population=population)
    n_most = min(int(effort * WORK / work), _MOST)
    if n_most < 1:
        return None
    measured: list[_Study] = []
    guess = prior_spread(setting.domain) if population else setting.baseline_error
    oracle_mean, oracle_doubt = (0.0, 0.0) if population else oracle_error(setting, parts, rng)
    while len(measured) < n_most:
        with heard_by(None):
            measured.append(_study(setting, draw_study(setting, parts, rng, population=population), name, population))
        tell("studies simulated", len(measured), n_most, at_most=True)
        if len(measured) >= _FEWEST and len(measured) % _FEWEST == 0:
            simulation = _summarize(setting, measured, oracle_mean, oracle_doubt, population)
            if _enough(simulation, guess, precision):
                return simulation
    return _summarize(setting, measured, oracle_mean, oracle_doubt, population)


def _enough(simulation: Simulation, guess: float, precision: float) -> bool:
    """Sure of the error to that precision, a little less for small ones; or sure that it is as good as none."""
    wanted = max(precision * simulation.error, min(_EASY_PRECISION * simulation.error, precision * _EASY * guess))
    sure = simulation.standard_error < wanted and simulation.unseen < _EASY_PRECISION * simulation.error
    return sure or simulation.at_most < RESOLUTION * guess


def study_work(setting: Setting, parts: Sequence[CrowdPart], *, population: bool) -> float:
    """Roughly how many microseconds one study takes, whatever the machine: the answer must not depend on its speed."""
    n_cells = sum(part.n_workers * setting.reports_per_worker(part.channel) for part in parts)
    if population:
        return _OVERHEAD + 0.3 * n_cells
    per_report = 8.0 if isinstance(setting.domain, Scale) else 2.0 + 1.2 * setting.domain.size
    return _OVERHEAD + per_report * n_cells


@dataclass(frozen=True, slots=True, eq=False)
class _Study:
    """By question: the error, that of a reader who knows the workers, and what a count of mistakes would have been."""

    error: Floats
    oracle: Floats
    counted: Floats


def _study(setting: Setting, drawn: DrawnStudy, name: str, population: bool) -> _Study:
    estimate = method(name).fit(drawn.reports)
    if population:
        estimates = estimate.value[:, None] if isinstance(setting.domain, Scale) else estimate.posterior
        # Where nobody reported it is a guess, whose error is not that of the evenly spread opinions drawn here.
        guess = prior_spread(setting.domain) ** 2
        square = np.where(estimate.answered, ((estimates - drawn.truth) ** 2).mean(axis=1), guess)
        return _Study(square, np.zeros_like(square), square)
    belief = log_evidence(setting, drawn)
    if isinstance(setting.domain, Scale):
        guess = float(setting.domain.numbers.mean())
        distance = np.abs(np.where(estimate.answered, estimate.value, guess) - drawn.truth)
        return _Study(distance, np.abs(belief.medians() - drawn.truth), distance)
    value = np.where(estimate.answered, estimate.value, 0)
    posterior = belief.posterior()
    wrong = 1 - posterior[np.arange(len(value)), value]
    return _Study(wrong, 1 - posterior.max(axis=1), (value != drawn.truth).astype(np.float64))


def _summarize(
    setting: Setting, studies: Sequence[_Study], oracle_mean: float, oracle_doubt: float, population: bool
) -> Simulation:
    error = np.concatenate([study.error for study in studies])
    oracle_errors = np.concatenate([study.oracle for study in studies])
    slope = _slope(error, oracle_errors)
    residuals = [study.error - slope * study.oracle for study in studies]
    mean = float(np.mean(np.concatenate(residuals))) + slope * oracle_mean
    residual_error = _standard_error(residuals)
    counted = np.array([study.counted.mean() for study in studies])
    within = math.sqrt(float(np.mean([study.counted.var() / len(study.counted) for study in studies])))
    between = max(float(counted.std(ddof=1)) if len(counted) >= _FEWEST else 0.0, within)
    standard_error = math.hypot(residual_error, slope * oracle_doubt)
    if population:
        root = math.sqrt(max(mean, 0.0))
        return Simulation(root, standard_error / max(2 * root, 1e-300), between / max(2 * root, 1e-300), len(studies))
    # On scales every question errs a little, and what was seen tells how much.
    unseen = 0.0 if isinstance(setting.domain, Scale) else 1 / len(error)
    return Simulation(max(mean, 0.0), standard_error, between, len(studies), unseen)


def _slope(error: Floats, oracle_errors: Floats) -> float:
    """How much of the knowing reader's luck is the method's luck too (the best control coefficient).

    On choices the knowing reader is never worse; where mistakes are too rare to tell, all of its luck is shared.
    """
    if (error >= oracle_errors - 1e-9).all() and np.count_nonzero(error > _RARE) < _ENOUGH:
        return 1.0
    variance = float(oracle_errors.var())
    if variance <= 0:
        return 0.0
    return float(np.clip(((error - error.mean()) * (oracle_errors - oracle_errors.mean())).mean() / variance, 0.0, 1.0))


def _standard_error(residuals: Sequence[Floats]) -> float:
    """From study to study where there are enough of them, and never below that of independent questions."""
    everything = np.concatenate(residuals)
    single = float(everything.std()) / math.sqrt(len(everything))
    if len(residuals) < _FEWEST:
        return single
    means = np.array([study_residuals.mean() for study_residuals in residuals])
    return max(single, float(means.std(ddof=1)) / math.sqrt(len(residuals)))
