"""What no mechanism can pass: the information that ε lets through, whatever is done on the device and on the server."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.bounds.information import answer_law, entropy, least_error, staircase_information, with_empty
from crowdveil.domain import Scale
from crowdveil.plan.design import Setting
from crowdveil.plan.population import prior_spread, sampling_error

Floats = NDArray[np.float64]
_MOST_SYMBOLS = 40
# Where truths are looked at, in half steps from the middle, and how much each counts (trapezoids).
_BESIDE = (0.0, 0.25, 0.5, 0.75, 1.0)
_WEIGHTS = (0.125, 0.25, 0.25, 0.25, 0.125)


@dataclass(frozen=True, slots=True)
class PlannedFloor:
    """The floor, in words what it is, and the number it stands beside: that of a guess, in the same measure."""

    value: float
    beside: float
    meaning: str


def planned_floor(setting: Setting, *, population: bool) -> PlannedFloor:
    """The floor that belongs to this kind of study."""
    if population:
        meaning = "the error of the same people asked without privacy"
        return PlannedFloor(sampling_error(setting), prior_spread(setting.domain), meaning)
    if isinstance(setting.domain, Scale):
        meaning = "the least standard deviation of any unbiased estimate at this ε"
        return PlannedFloor(scale_floor(setting), setting.domain.range / math.sqrt(12), meaning)
    return PlannedFloor(choice_floor(setting), setting.baseline_error, "the least error rate of any method at this ε")


def scale_floor(setting: Setting) -> float:
    """The least standard deviation of an unbiased estimate of a mid-scale truth, skills known, over all channels.

    While a truth moves within a level, the answers of people who hardly err do not: in the middle of a level nothing
    could be told, and half a step beside it everything. So the information is that of the middle or the average from
    there to half a step beside it, whichever is more: a floor that can be passed is none.
    """
    assert isinstance(setting.domain, Scale)
    middle, half_step = float(setting.domain.low + setting.domain.high) / 2, float(setting.domain.step) / 2
    information_at = [_information(setting, setting.domain, middle + beside * half_step) for beside in _BESIDE]
    information = max(information_at[0], float(np.average(information_at, weights=_WEIGHTS)))
    return math.inf if information <= 0 else 1 / math.sqrt(setting.reports_per_question * information)


def _information(setting: Setting, scale: Scale, truth: float) -> float:
    """What one report can tell at best about this truth, on average over the crowd."""
    information = 0.0
    for skill_class in setting.crowd.real:
        law = answer_law(truth, float(setting.crowd.skill[skill_class]), scale)
        p, slope = _group_symbols(*(with_empty(law, setting.share) if setting.protect_participation else law))
        information += float(setting.crowd.shares[skill_class]) * staircase_information(p, slope, setting.epsilon)
    return information


def _group_symbols(p: Floats, slope: Floats) -> tuple[Floats, Floats]:
    """Symbols of nearly the same score as one, where there are too many to try every run of them."""
    if len(p) <= _MOST_SYMBOLS:
        return p, slope
    order = np.argsort(slope / np.maximum(p, 1e-300), kind="stable")
    group = np.minimum((np.cumsum(np.sqrt(p[order])) / np.sqrt(p).sum() * _MOST_SYMBOLS).astype(int), _MOST_SYMBOLS - 1)
    together = [np.bincount(group, part[order], minlength=_MOST_SYMBOLS).astype(np.float64) for part in (p, slope)]
    return together[0], together[1]


def choice_floor(setting: Setting) -> float:
    """The least error rate on choices, skills known, for any ε-private reports (Fano with a contraction).

    An ε-private channel lets through at most tanh²(ε/2) of the information an answer holds about the truth (the
    contraction of Kullback–Leibler divergence; Asoodeh & Zhang 2022), so all reports together hold at most
    N·s·tanh²(ε/2)·I(truth; answer) nats.
    """
    answers = setting.crowd.answers(setting.domain, setting.truths)
    information = float(setting.crowd.shares @ np.array([_mutual_information(table) for table in answers]))
    allowed = setting.n_workers * setting.share * math.tanh(setting.epsilon / 2) ** 2 * information
    return min(least_error(np.full(setting.domain.size, 1 / setting.domain.size), allowed), setting.baseline_error)


def _mutual_information(table: Floats) -> float:
    """I(truth; answer) in nats for evenly spread truths; rows are truths."""
    return entropy(table.mean(axis=0)) - float(np.mean([entropy(row) for row in table]))
