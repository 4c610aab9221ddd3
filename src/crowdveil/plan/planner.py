"""The plan: what to expect, what it would take, and why, in one value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from crowdveil.domain import Scale
from crowdveil.errors import InputError
from crowdveil.exact import json_number
from crowdveil.plan.charge import Charge, study_charge
from crowdveil.plan.evolution import Prediction, predict
from crowdveil.plan.floor import Limit, limit
from crowdveil.plan.population import predict_population, prior_spread
from crowdveil.plan.recommend import Predictor, Recommendation, channel_of, recommend
from crowdveil.plan.search import LARGEST_EPSILON, MOST_WORKERS, SMALLEST_EPSILON, least
from crowdveil.plan.setting import Setting

# Below this share of the error of a guess the reports have told something.
_LEARNT = 0.9
_MOST_LEVELS = 201


@dataclass(frozen=True, slots=True)
class Plan:
    """`interval` holds the error of one study of this size 95 times in 100; `floor` is what nobody can pass.

    `feasible` is whether the expected error reaches the target or, without one, whether the reports tell more than a
    guess does.
    """

    measure: str
    feasible: bool
    expected_error: float
    interval: tuple[float, float]
    prior_error: float
    floor: float
    floor_meaning: str
    target_error: float
    workers_needed: int | None
    epsilon_needed: float | None
    mechanism: str
    method: str
    why: str
    charge: Charge

    def to_json(self) -> dict[str, object]:
        return {
            "measure": self.measure,
            "feasible": self.feasible,
            "expected_error": self.expected_error,
            "interval": list(self.interval),
            "prior_error": self.prior_error,
            "floor": json_number(self.floor),
            "floor_meaning": self.floor_meaning,
            "target_error": self.target_error,
            "workers_needed": self.workers_needed,
            "epsilon_needed": self.epsilon_needed,
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
) -> Plan:
    """Plan the study; without a target, what it would take to halve the error of a guess is told as well."""
    _check(setting, target_error)
    quick: Predictor = predict_population if population else partial(predict, effort=0.2)
    careful: Predictor = predict_population if population else predict
    chosen = recommend(setting, quick, only=mechanism)
    found = careful(setting, chosen.channel)
    prior = prior_spread(setting.domain) if population else setting.prior_error
    floor = limit(setting, population=population)
    target = prior / 2 if target_error is None else target_error
    learnt = found.error < _LEARNT * prior and floor.value < floor.beside
    feasible = learnt if target_error is None else learnt and found.error <= target
    measure = _measure(setting, population)
    return Plan(
        measure,
        feasible,
        found.error,
        _interval(found, setting.n_questions),
        prior,
        floor.value,
        floor.meaning,
        target,
        _workers_needed(setting, chosen, quick, target),
        _epsilon_needed(setting, chosen, quick, target),
        chosen.mechanism,
        _method(setting, population),
        _why(setting, chosen, found, floor, prior, measure, feasible, target_error),
        study_charge(
            chosen.channel.epsilon,
            setting.n_questions,
            setting.share,
            protect_participation=setting.protect_participation,
            max_answers=max_answers,
        ),
    )


def _check(setting: Setting, target_error: float | None) -> None:
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


def _method(setting: Setting, population: bool) -> str:
    if population:
        return "population-mean" if isinstance(setting.domain, Scale) else "frequency"
    return "channel-em" if isinstance(setting.domain, Scale) else "channel-bp"


def _interval(found: Prediction, n_questions: int) -> tuple[float, float]:
    half = 1.96 * math.sqrt(found.spread**2 / n_questions + found.standard_error**2)
    return max(found.error - half, 0.0), found.error + half


def _workers_needed(setting: Setting, chosen: Recommendation, predictor: Predictor, target: float) -> int | None:
    def error_at(n_workers: float) -> float:
        return predictor(setting.with_workers(math.ceil(n_workers)), chosen.channel).error

    needed = least(error_at, target, 1, MOST_WORKERS)
    return None if needed is None else math.ceil(needed)


def _epsilon_needed(setting: Setting, chosen: Recommendation, predictor: Predictor, target: float) -> float | None:
    def error_at(epsilon: float) -> float:
        other = setting.with_epsilon(epsilon)
        return predictor(other, channel_of(chosen.mechanism, other)).error

    needed = least(error_at, target, SMALLEST_EPSILON, LARGEST_EPSILON, steps=6)
    return None if needed is None else round(needed, 3)


def _why(
    setting: Setting,
    chosen: Recommendation,
    found: Prediction,
    floor: Limit,
    prior: float,
    measure: str,
    feasible: bool,
    target: float | None,
) -> str:
    sentences = [chosen.why(measure)]
    if floor.value >= floor.beside:
        sentences.append(
            f"impossible: {floor.meaning} is {floor.value:.3g}, and a guess without any report has {floor.beside:.3g}"
        )
    elif not feasible and found.error >= _LEARNT * prior:
        sentences.append(f"impossible: the expected {measure} is hardly below that of a guess ({prior:.3g})")
    elif not feasible:
        sentences.append(f"the expected {measure} misses the target of {target:.3g}")
    else:
        sentences.append(f"a guess without any report has {prior:.3g}")
    if setting.protect_participation and setting.share < 0.5:
        sentences.append("hiding who answered is dear here: most reports come from people who did not answer")
    return "; ".join(sentences)
