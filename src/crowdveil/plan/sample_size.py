"""What a wanted error takes: searched by calculation, then corrected until a rehearsal of it agrees.

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
from crowdveil.plan.expected_error import Expectation, rehearsed
from crowdveil.plan.recommend import Predictor, channel_of

MOST_WORKERS = 10_000_000
LARGEST_EPSILON = 8.0
SMALLEST_EPSILON = 0.01

# Rehearsed errors above this part of the target are near enough to it.
_NEAR = 0.9
_AIM = 0.96
_REHEARSALS = 4
_PRECISION = 0.035
# One rehearsal changes the aim by no more than this factor.
_FARTHEST = 4.0
# Where a rehearsal misses the target the next is of so much more at least, the second time twice as much again.
_STRIDE = 1.1


@dataclass(frozen=True, slots=True)
class Need:
    """The least that reaches the target (None: more than is looked at), and whether a rehearsal of just that did."""

    least: float | None
    rehearsed: bool


@dataclass(frozen=True, slots=True)
class Line:
    """What is varied: the study `at` a place, the places that are looked at, `step` by step, and the `asked` one.

    >>> Line(Setting.with_epsilon, 0.001, 0.01, 1.0, 8.0).rounded(0.2202)
    0.221
    """

    at: Callable[[Setting, float], Setting]
    step: float
    low: float
    asked: float
    high: float

    def rounded(self, place: float) -> float:
        """Up to the next step: a little more than enough is enough."""
        return round(math.ceil(place / self.step - 1e-9) * self.step, 3)

    def after(self, place: float) -> float:
        """The first step that is more."""
        return self.rounded(place + self.step)


@dataclass(frozen=True, slots=True)
class Known:
    """The most that is known to be `too_little`, and the least that is known to be `enough`, by rehearsal or not."""

    line: Line
    too_little: float | None
    enough: float | None
    rehearsed: bool
    stride: float = 1.0

    def above(self, place: float) -> Known:
        """It takes more than this."""
        stride = _STRIDE if self.stride == 1 else self.stride**2
        return replace(self, too_little=place, stride=1.0 if self.enough is not None else stride)

    def place(self, error_at: Callable[[float], float], aim: float, *, steps: int) -> float | None:
        """Where the calculation reaches the aim, between the two; None if nowhere up to the end of the line."""
        low = self.line.low if self.too_little is None else self.line.after(self.stride * self.too_little)
        high = self.line.high if self.enough is None else self.enough
        if low >= high:
            return self.enough if self.enough is not None or low > high else high
        found = smallest_reaching(error_at, aim, low, high, steps=steps)
        if found is None:
            return self.enough
        place = self.line.rounded(found)
        return place if self.enough is None or place < self.enough else self.enough


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """`asked` is what to expect of the study itself, `reaches` whether a study with this error is as wanted.

    `calculate` is for searches, `carefully` for what is rehearsed; `effort` is that of each rehearsal, and 0 leaves it
    at the calculation.
    """

    setting: Setting
    mechanism: str
    calculate: Predictor
    carefully: Predictor
    target: float
    population: bool
    effort: float
    asked: Expectation
    reaches: Callable[[Setting, float], bool]

    def workers(self) -> Need:
        """The fewest workers at the setting's ε; None above ten million."""

        line = Line(_with_workers, 1, 1, self.setting.n_workers, MOST_WORKERS)
        return self._least(line, steps=12)

    def epsilon(self) -> Need:
        """The smallest ε with the setting's workers; None above 8."""
        line = Line(Setting.with_epsilon, 0.001, SMALLEST_EPSILON, self.setting.epsilon, LARGEST_EPSILON)
        return self._least(line, steps=6)

    def _least(self, line: Line, *, steps: int) -> Need:
        """Search by calculation, rehearse what is found, and search anew with what that taught."""
        error_at, known = self._calculation(line), self._known(line)
        aim = self.target * (_AIM if self.effort > 0 else 1.0)
        for _ in range(_REHEARSALS if self.effort > 0 else 0):
            place = known.place(error_at, aim, steps=steps)
            if place is None or place == known.enough:
                break
            setting, calculated = line.at(self.setting, place), error_at(place)
            error, played = self._error(setting, calculated)
            if not self.reaches(setting, error):
                known = known.above(place)
            else:
                known = replace(known, enough=place, rehearsed=played)
                if error >= _NEAR * self.target:
                    break
            aim = calculated * float(np.clip(_AIM * self.target / max(error, 1e-300), 1 / _FARTHEST, _FARTHEST))
        if known.enough is not None and self.effort > 0:
            return Need(known.enough, known.rehearsed)
        place = known.place(error_at, aim, steps=steps)
        return Need(place, known.rehearsed and place == known.enough)

    def _known(self, line: Line) -> Known:
        """What the asked study tells."""
        if self.reaches(self.setting, self.asked.error):
            return Known(line, None, line.asked, self.asked.n_studies > 0)
        return Known(line, line.asked, None, False)

    def _calculation(self, line: Line) -> Callable[[float], float]:
        """The error calculated at a place, in the proportion that the asked study's has to its own calculation."""

        @cache
        def calculated(place: float) -> float:
            setting = line.at(self.setting, place)
            try:
                return self.calculate(setting, channel_of(self.mechanism, setting)).error
            except InputError:
                # Some mechanisms cannot serve a small ε; whoever searches goes on with a larger one.
                return math.inf

        there = calculated(line.asked)
        part = self.asked.error / there if there > 0 and self.asked.error > 0 else 1.0
        return lambda place: part * calculated(line.rounded(place))

    def _error(self, setting: Setting, otherwise: float) -> tuple[float, bool]:
        """What a rehearsal says, and whether there was one."""
        channel = channel_of(self.mechanism, setting)
        parts = [CrowdPart(channel, setting.n_workers)]
        carefully = self.carefully(setting, channel)
        found = rehearsed(
            setting, parts, carefully, population=self.population, effort=self.effort, precision=_PRECISION
        )
        return (otherwise, False) if found is None else (found.error, True)


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
