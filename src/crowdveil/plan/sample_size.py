"""What a wanted error takes: searched by calculation, then corrected until a simulation of it agrees.

The study that was asked for is known already. So what is named lies on the right side of it, whatever a calculation
says: above where the study misses the target, and not above where it reaches it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from crowdveil.errors import InputError
from crowdveil.plan.design import CrowdPart, Setting
from crowdveil.plan.expected_error import Expectation, simulate_error
from crowdveil.plan.recommend import Predictor, mechanism_channel

MOST_WORKERS = 10_000_000
LARGEST_EPSILON = 8.0
SMALLEST_EPSILON = 0.01

# Simulated errors above this part of the target are near enough to it.
_NEAR = 0.9
_AIM = 0.96
_SIMULATIONS = 4
_PRECISION = 0.035
# One simulation changes the aim by no more than this factor.
_FARTHEST = 4.0
# Where a simulation misses the target the next is of so much more at least, the second time twice as much again.
_STRIDE = 1.1


@dataclass(frozen=True, slots=True)
class Requirement:
    """The least that reaches the target (None: more than is looked at), and whether a simulation of just that did."""

    least: float | None
    simulated: bool


@dataclass(frozen=True, slots=True)
class SearchAxis:
    """What is varied: the study `at` a value, the values that are looked at, `step` by step, and the `asked` one.

    >>> SearchAxis(Setting.with_epsilon, 0.001, 0.01, 1.0, 8.0).round_to_step(0.2202)
    0.221
    """

    at: Callable[[Setting, float], Setting]
    step: float
    low: float
    asked: float
    high: float

    def round_to_step(self, value: float) -> float:
        """Up to the next step: a little more than enough is enough."""
        return round(math.ceil(value / self.step - 1e-9) * self.step, 3)

    def next_step(self, value: float) -> float:
        """The first step that is more."""
        return self.round_to_step(value + self.step)


@dataclass(frozen=True, slots=True)
class Bracket:
    """The most that is known to be `too_little`, and the least that is known to be `enough`, by simulation or not."""

    axis: SearchAxis
    too_little: float | None
    enough: float | None
    simulated: bool
    stride: float = 1.0

    def above(self, value: float) -> Bracket:
        """It takes more than this."""
        stride = _STRIDE if self.stride == 1 else self.stride**2
        return replace(self, too_little=value, stride=1.0 if self.enough is not None else stride)

    def next_candidate(self, error_at: Callable[[float], float], aim: float, *, steps: int) -> float | None:
        """Where the calculation reaches the aim, between the two; None if nowhere up to the end of the axis."""
        low = self.axis.low if self.too_little is None else self.axis.next_step(self.stride * self.too_little)
        high = self.axis.high if self.enough is None else self.enough
        if low >= high:
            return self.enough if self.enough is not None or low > high else high
        crossing = smallest_reaching(error_at, aim, low, high, steps=steps)
        if crossing is None:
            return self.enough
        candidate = self.axis.round_to_step(crossing)
        return candidate if self.enough is None or candidate < self.enough else self.enough


@dataclass(frozen=True, slots=True, eq=False)
class SampleSizeSearch:
    """`asked` is what to expect of the study itself, `reaches` whether a study with this error is as wanted.

    `calculate` is for searches, `precise_predictor` for what is simulated; `effort` is that of each simulation, and 0
    leaves it at the calculation.
    """

    setting: Setting
    mechanism: str
    calculate: Predictor
    precise_predictor: Predictor
    target: float
    population: bool
    effort: float
    asked: Expectation
    reaches: Callable[[Setting, float], bool]

    def workers(self) -> Requirement:
        """The fewest workers at the setting's ε; None above ten million."""

        axis = SearchAxis(_with_workers, 1, 1, self.setting.n_workers, MOST_WORKERS)
        return self._least(axis, steps=12)

    def epsilon(self) -> Requirement:
        """The smallest ε with the setting's workers; None above 8."""
        axis = SearchAxis(Setting.with_epsilon, 0.001, SMALLEST_EPSILON, self.setting.epsilon, LARGEST_EPSILON)
        return self._least(axis, steps=6)

    def _least(self, axis: SearchAxis, *, steps: int) -> Requirement:
        """Search by calculation, simulate what is found, and search anew with what that taught."""
        error_at, bracket = self._calculation(axis), self._initial_bracket(axis)
        aim = self.target * (_AIM if self.effort > 0 else 1.0)
        for _ in range(_SIMULATIONS if self.effort > 0 else 0):
            candidate = bracket.next_candidate(error_at, aim, steps=steps)
            if candidate is None or candidate == bracket.enough:
                break
            setting, calculated = axis.at(self.setting, candidate), error_at(candidate)
            error, played = self._error(setting, calculated)
            if not self.reaches(setting, error):
                bracket = bracket.above(candidate)
            else:
                bracket = replace(bracket, enough=candidate, simulated=played)
                if error >= _NEAR * self.target:
                    break
            aim = calculated * float(np.clip(_AIM * self.target / max(error, 1e-300), 1 / _FARTHEST, _FARTHEST))
        if bracket.enough is not None and self.effort > 0:
            return Requirement(bracket.enough, bracket.simulated)
        candidate = bracket.next_candidate(error_at, aim, steps=steps)
        return Requirement(candidate, bracket.simulated and candidate == bracket.enough)

    def _initial_bracket(self, axis: SearchAxis) -> Bracket:
        """What the asked study tells."""
        if self.reaches(self.setting, self.asked.error):
            return Bracket(axis, None, axis.asked, self.asked.n_studies > 0)
        return Bracket(axis, axis.asked, None, False)

    def _calculation(self, axis: SearchAxis) -> Callable[[float], float]:
        """The error calculated at a value, in the proportion that the asked study's has to its own calculation."""

        @cache
        def calculate_error(value: float) -> float:
            setting = axis.at(self.setting, value)
            try:
                return self.calculate(setting, mechanism_channel(self.mechanism, setting)).error
            except InputError:
                # Some mechanisms cannot serve a small ε; whoever searches goes on with a larger one.
                return math.inf

        there = calculate_error(axis.asked)
        part = self.asked.error / there if there > 0 and self.asked.error > 0 else 1.0
        return lambda value: part * calculate_error(axis.round_to_step(value))

    def _error(self, setting: Setting, otherwise: float) -> tuple[float, bool]:
        """What a simulation says, and whether there was one."""
        channel = mechanism_channel(self.mechanism, setting)
        parts = [CrowdPart(channel, setting.n_workers)]
        prediction = self.precise_predictor(setting, channel)
        simulated = simulate_error(
            setting, parts, prediction, population=self.population, effort=self.effort, precision=_PRECISION
        )
        return (otherwise, False) if simulated is None else (simulated.error, True)


def _with_workers(setting: Setting, n_workers: float) -> Setting:
    return setting.with_workers(math.ceil(n_workers))


def smallest_reaching(
    error_at: Callable[[float], float], target: float, low: float, high: float, *, steps: int = 12
) -> float | None:
    """The smallest x in [low, high] with error_at(x) ≤ target, on a logarithmic scale; None if there is none.

    `error_at` must fall as x rises (up to the planner's own noise).
    """
    if error_at(low) <= target:
        return low
    bottom, top = math.log(low), math.log(low)
    # Climb in growing strides first: errors far from the target are cheap to tell apart.
    stride = math.log(2)
    while top < math.log(high):
        top = min(top + stride, math.log(high))
        if error_at(math.exp(top)) <= target:
            break
        bottom, stride = top, stride * 1.7
    else:
        return None
    for _ in range(steps):
        if top - bottom < 0.01:
            break
        middle = (bottom + top) / 2
        if error_at(math.exp(middle)) <= target:
            top = middle
        else:
            bottom = middle
    return math.exp(top)
