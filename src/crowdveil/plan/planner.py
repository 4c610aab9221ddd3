"""The plan: what to expect, what it would take, and why, in one value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from crowdveil.domain import Scale
from crowdveil.errors import InputError
from crowdveil.exact import json_number
from crowdveil.plan.density_evolution import predict
from crowdveil.plan.design import CrowdPart, Setting
from crowdveil.plan.expected_error import expect_error, interval, recommended_method
from crowdveil.plan.lower_bound import PlannedFloor, planned_floor
from crowdveil.plan.population import predict_population, prior_spread
from crowdveil.plan.privacy_cost import StudyCharge, study_charge
from crowdveil.plan.recommend import Predictor, Recommendation, recommend
from crowdveil.plan.sample_size import SampleSizeSearch

# Below this share of the error of a guess the reports have told something.
_LEARNT = 0.9
_MOST_LEVELS = 201
_MOST_EFFORT = 1000
# What the floor rules out needs no long simulation, nor does each step on the way to a target.
_PART = 0.25


@dataclass(frozen=True, slots=True)
class Plan:
    """The errors, costs and sizes to expect of a study.

    `interval` holds the error of one study of this size 95 times in 100; `floor` is what nobody can pass.

    Errors are in `unit`: points on the scale, whatever its step, or a share. None is larger than the scale.

    `standard_error` is how sure the planner is of `expected_error`, after `n_simulations` studies (0: calculated only).
    Where that is more than a fifteenth of it, the number itself is not `known`, only that it is `at_most` so much.
    `feasible` is whether the expected error reaches the target or, without one, whether the reports say more than a
    guess does. What the target needs is more than was asked for where the expected error misses it, and else not more;
    `workers_simulated` and `epsilon_simulated` tell whether just that was simulated, or is only calculated.
    """

    measure: str
    unit: str
    feasible: bool
    expected_error: float
    standard_error: float
    at_most: float
    n_simulations: int
    interval: tuple[float, float]
    prior_error: float
    floor: float
    floor_meaning: str
    target_error: float
    workers_needed: int | None
    workers_simulated: bool
    epsilon_needed: float | None
    epsilon_simulated: bool
    mechanism: str
    method: str
    why: str
    charge: StudyCharge

    @property
    def known(self) -> bool:
        """Sure enough for a fifth to be three standard errors."""
        return 15 * self.standard_error <= self.expected_error

    def to_json(self) -> dict[str, object]:
        return {
            "measure": self.measure,
            "unit": self.unit,
            "feasible": self.feasible,
            "expected_error": self.expected_error,
            "standard_error": self.standard_error,
            "at_most": self.at_most,
            "n_simulations": self.n_simulations,
            "interval": list(self.interval),
            "prior_error": self.prior_error,
            "floor": json_number(self.floor),
            "floor_meaning": self.floor_meaning,
            "target_error": self.target_error,
            "workers_needed": self.workers_needed,
            "workers_simulated": self.workers_simulated,
            "epsilon_needed": self.epsilon_needed,
            "epsilon_simulated": self.epsilon_simulated,
            "mechanism": self.mechanism,
            "method": self.method,
            "why": self.why,
            "charge": self.charge.to_json(),
        }


def plan(
    setting: Setting,
    *,
    target_error: float | None = None,
    population: bool = False,
    mechanism: str | None = None,
    max_answers: int | None = None,
    effort: float = 1.0,
) -> Plan:
    """Plan the study; without a target, what it would take to halve the error of a guess is told as well.

    The study is calculated first and then simulated with the recommended method. `effort` is how much of that: 1 takes
    a few seconds, 0 leaves it at the calculation.
    """
    _check(setting, target_error, effort)
    chosen = recommend(setting, _predictor(population, effort=0.2), only=mechanism)
    parts = [CrowdPart(chosen.channel, setting.n_workers)]
    prior = prior_spread(setting.domain) if population else setting.baseline_error
    floor = planned_floor(setting, population=population)
    played = effort if floor.value < floor.beside else _PART * effort
    calculated = _predictor(population)(setting, chosen.channel)
    expectation = expect_error(setting, parts, calculated, population=population, effort=played)
    target = prior / 2 if target_error is None else target_error
    feasible = _learnt(expectation.error, prior, floor) and (target_error is None or expectation.error <= target)

    def reaches(study: Setting, error: float) -> bool:
        """Whether a study is as wanted: what is feasible must not need more, and what is not must."""
        if error > target or target_error is None:
            return error <= target
        return _learnt(error, prior, planned_floor(study, population=population))

    measure = _measure(setting, population)
    needs = SampleSizeSearch(
        setting,
        chosen.mechanism,
        _predictor(population, effort=0.1),
        _predictor(population),
        # What is hardly better than a guess is not wanted, whatever the target.
        min(target, _LEARNT * prior),
        population,
        0.0 if target_error is None else _PART * effort,
        expectation,
        reaches,
    )
    workers, least = needs.workers(), needs.epsilon()
    return Plan(
        measure,
        _unit(setting),
        feasible,
        min(expectation.error, setting.largest_error),
        expectation.standard_error,
        min(expectation.at_most, setting.largest_error),
        expectation.n_studies,
        interval(setting, expectation, population=population),
        prior,
        floor.value,
        floor.meaning,
        target,
        None if workers.least is None else math.ceil(workers.least),
        workers.simulated,
        least.least,
        least.simulated,
        chosen.mechanism,
        recommended_method(setting, population=population),
        _why(setting, chosen, expectation.error, floor, prior, measure, feasible, target_error),
        study_charge(
            chosen.channel.epsilon,
            setting.n_questions,
            setting.share,
            protect_participation=setting.protect_participation,
            max_answers=max_answers,
        ),
    )


def _learnt(error: float, prior: float, floor: PlannedFloor) -> bool:
    return error < _LEARNT * prior and floor.value < floor.beside


def _predictor(population: bool, *, effort: float = 1.0) -> Predictor:
    """How the error is calculated; opinions in closed form, whatever the effort."""
    return predict_population if population else partial(predict, effort=effort)


def _check(setting: Setting, target_error: float | None, effort: float) -> None:
    if not 0 <= effort <= _MOST_EFFORT:
        raise InputError(f"effort must be from 0 to {_MOST_EFFORT}; got {effort:g}", fix="1 takes a few seconds")
    if setting.domain.size > _MOST_LEVELS:
        raise InputError(
            f"the planner handles up to {_MOST_LEVELS} options or levels; got {setting.domain.size}",
            fix="choose a larger step",
        )
    if setting.domain.size < 2:
        raise InputError("a question with one option needs no study", fix="give at least two options")
    if target_error is not None and not (math.isfinite(target_error) and target_error > 0):
        raise InputError(f"the target error must be a positive number; got {target_error}")


def _measure(setting: Setting, population: bool) -> str:
    if population:
        return "RMSE of the mean" if isinstance(setting.domain, Scale) else "RMSE of a share"
    return "mean absolute error" if isinstance(setting.domain, Scale) else "error rate"


def _unit(setting: Setting) -> str:
    if isinstance(setting.domain, Scale):
        return f"points on the scale {float(setting.domain.low):g} to {float(setting.domain.high):g}"
    return "share"


def _why(
    setting: Setting,
    chosen: Recommendation,
    error: float,
    floor: PlannedFloor,
    prior: float,
    measure: str,
    feasible: bool,
    target: float | None,
) -> str:
    sentences = [chosen.why(measure)]
    if floor.value >= floor.beside:
        sentences.append(
            f"impossible: {floor.meaning} is {floor.value:.3g}, and a guess without asking has {floor.beside:.3g}"
        )
    elif not feasible and error >= _LEARNT * prior:
        sentences.append(
            f"impossible: the expected {measure} is hardly below that of a guess without asking ({prior:.3g})"
        )
    elif not feasible:
        sentences.append(f"the expected {measure} misses the target of {target:.3g}")
    else:
        sentences.append(f"a guess without asking has {prior:.3g}")
    if setting.protect_participation and setting.share < 0.5:
        sentences.append("hiding who answered is dear here: most reports come from people who did not answer")
    return "; ".join(sentences)
