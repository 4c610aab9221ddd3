"""What a wanted error takes: searched by calculation, then corrected until a rehearsal of it agrees."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from crowdveil.errors import InputError
from crowdveil.plan.expected import expected
from crowdveil.plan.recommend import Predictor, channel_of
from crowdveil.plan.search import LARGEST_EPSILON, MOST_WORKERS, SMALLEST_EPSILON, least
from crowdveil.plan.setting import CrowdPart, Setting

# Rehearsed errors in this part of the target are as wanted: below it, and not by more than a tenth.
_REACHED = (0.9, 1.0)
_AIM = 0.96
_CORRECTIONS = 2
_PRECISION = 0.035


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """`effort` is that of each rehearsal; 0 leaves it at the calculation."""

    setting: Setting
    mechanism: str
    calculate: Predictor
    target: float
    population: bool
    effort: float

    def workers(self) -> int | None:
        """The fewest workers at the setting's ε; None above ten million."""
        channel = channel_of(self.mechanism, self.setting)

        def calculated(n_workers: float) -> float:
            return self.calculate(self.setting.with_workers(math.ceil(n_workers)), channel).error

        needed = self._confirmed(calculated, self._at_workers, 1, MOST_WORKERS, steps=12)
        return None if needed is None else math.ceil(needed)

    def epsilon(self) -> float | None:
        """The smallest ε with the setting's workers; None above 8."""

        def calculated(epsilon: float) -> float:
            other = self.setting.with_epsilon(epsilon)
            try:
                return self.calculate(other, channel_of(self.mechanism, other)).error
            except InputError:
                # Some mechanisms cannot serve a small ε; whoever searches goes on with a larger one.
                return math.inf

        needed = self._confirmed(calculated, self.setting.with_epsilon, SMALLEST_EPSILON, LARGEST_EPSILON, steps=6)
        return None if needed is None else round(needed, 3)

    def _at_workers(self, n_workers: float) -> Setting:
        return self.setting.with_workers(math.ceil(n_workers))

    def _confirmed(
        self,
        calculated: Callable[[float], float],
        setting_at: Callable[[float], Setting],
        low: float,
        high: float,
        *,
        steps: int,
    ) -> float | None:
        """Search for the target; where a rehearsal says otherwise, search for what corrects it."""
        # A corrected search passes most of the points of the first one again.
        calculated = cache(calculated)
        aim, needed = self.target, least(calculated, self.target, low, high, steps=steps)
        for _ in range(_CORRECTIONS if self.effort > 0 else 0):
            if needed is None:
                return None
            rehearsed = self._rehearsed(setting_at(needed))
            part = rehearsed / self.target
            if _REACHED[0] <= part <= _REACHED[1] or rehearsed <= 0 or (needed <= low and part <= 1):
                break
            aim *= _AIM / part
            needed = least(calculated, aim, low, high, steps=steps)
        return needed

    def _rehearsed(self, setting: Setting) -> float:
        channel = channel_of(self.mechanism, setting)
        found = self.calculate(setting, channel)
        parts = [CrowdPart(channel, setting.n_workers)]
        return expected(
            setting, parts, found, population=self.population, effort=self.effort, precision=_PRECISION
        ).error
