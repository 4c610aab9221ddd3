"""Whether reports say more than a guess, and what it would take if they do not.

A guess is the middle of a scale, or equal shares (`crowdveil.plan`). Where the interval of an estimate is hardly
narrower than that of a guess, the planner says how many workers, or which ε, would halve the uncertainty of the guess.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.broker.results.tables import Part
from crowdveil.broker.studies.definition import Opened
from crowdveil.channel import Channel
from crowdveil.domain import Choices, Domain, Scale
from crowdveil.errors import InputError
from crowdveil.inference.uncertainty.summaries import QUANTILE
from crowdveil.plan import CrowdPart, CrowdSkill, Setting, mix
from crowdveil.plan.population import prior_spread
from crowdveil.plan.recommend import mechanism_channel
from crowdveil.plan.sample_size import LARGEST_EPSILON, MOST_WORKERS, smallest_reaching

NO_NEWS = 0.9
"""An interval, or an error rate, this near to that of a guess tells nothing; the planner draws the same line."""
ANSWERED = 0.9
"""Share of questions answered that is planned with where the reports hide it."""
MAX_SECONDS = 2.0
"""So long the planner may take for a batch; what is not known by then is left out."""
MAX_TRUTH_OPTIONS = 64
"""One prediction about the truth of a larger domain takes longer than that by itself."""
# Two digits are shown: a twentieth of the planner's usual care and a few steps suffice.
_EFFORT, _STEPS = 0.05, 5


def half_widths(question: dict[str, Any], domain: Domain, goal: str) -> tuple[float, float] | None:
    """Half the interval of the estimate and of a guess, in the question's own unit; of boxes the widest."""
    if question.get("boxes"):
        return max((box["high"] - box["low"]) / 2 for box in question["boxes"]), 0.5
    if question["low"] is None or question["high"] is None or (goal == "truth" and not isinstance(domain, Scale)):
        return None
    widest = domain.range / 2 if isinstance(domain, Scale) else 0.5
    return (question["high"] - question["low"]) / 2, min(QUANTILE * prior_spread(domain), widest)


def is_informative(question: dict[str, Any], domain: Domain, floor: dict[str, Any] | None, goal: str) -> bool:
    """Whether the reports say more than a guess does."""
    if question["value"] is None or (floor is not None and not floor["informative"]):
        return False
    if goal == "truth" and not isinstance(domain, Scale):
        return 1 - (question["confidence"] or 0.0) < NO_NEWS * (1 - 1 / domain.size)
    widths = half_widths(question, domain, goal)
    return widths is None or widths[0] < NO_NEWS * widths[1]


def required_sample(
    part: Part, opened: Opened, n_by_level: list[int], n_reports: list[int], *, seconds: float
) -> dict[str, Any]:
    """Workers, levels chosen as now, or the ε for as many workers as now, that would halve the error of a guess.

    What is not known within so many seconds, or lies beyond what the planner looks at, is None.
    """
    n_workers, population = sum(n_by_level), opened.document["goal"] == "population"
    if n_workers == 0 or (not population and part.domain.size > MAX_TRUTH_OPTIONS):
        return {"n_workers": None, "epsilon": None}
    share = ANSWERED if opened.protects_participation else float(np.mean(n_reports)) / n_workers
    setting = Setting(
        part.domain,
        1.0,
        n_workers,
        min(max(share, 0.01), 1.0),
        CrowdSkill.from_name("mixed", part.domain),
        n_questions=len(opened.questions),
        protect_participation=opened.protects_participation,
    )
    plan = _Planner(part, setting, population, time.monotonic() + seconds)
    channels = [part.channels[channel] for channel in part.channel_of_level]

    def with_workers(n: float) -> float:
        counts = [math.ceil(n * each / n_workers) for each in n_by_level]
        return plan.error([CrowdPart(channel, count) for channel, count in zip(channels, counts, strict=True)])

    n_needed = plan.least(with_workers, n_workers, MOST_WORKERS)
    used = [level for level in opened.levels.values() if level.protected and n_by_level[level.number]]
    epsilon = None
    if used:
        commonest = max(used, key=lambda level: n_by_level[level.number])
        name = opened.document["levels"][commonest.number]["mechanism"]

        def with_epsilon(epsilon: float) -> float:
            try:
                return plan.error([CrowdPart(mechanism_channel(name, setting.with_epsilon(epsilon)), n_workers)])
            except InputError:
                return math.inf  # some mechanisms cannot serve every ε

        epsilon = plan.least(with_epsilon, channels[commonest.number].guarantee.epsilon, LARGEST_EPSILON)
    return {
        "n_workers": None if n_needed is None else math.ceil(_round_up(n_needed)),
        "epsilon": None if epsilon is None else _round_up(epsilon),
    }


@dataclass(frozen=True, slots=True)
class _Planner:
    """The expected error of one part of a study, as long as there is time."""

    part: Part
    setting: Setting
    population: bool
    end: float

    def error(self, crowd: list[CrowdPart]) -> float:
        if time.monotonic() > self.end:
            raise TimeoutError
        if self.population and self.part.boxes:
            return _box_error(crowd, len(self.part.boxes), self.setting.share)
        return mix(self.setting, crowd, population=self.population, effort=_EFFORT).error

    def least(self, error_at: Callable[[float], float], now: float, most: float) -> float | None:
        """The smallest number above the present one that halves the error of a guess; None where there is none."""
        one_box = Choices(("no", "yes"))
        guess = prior_spread(one_box if self.part.boxes else self.part.domain)
        target = (guess if self.population else self.setting.baseline_error) / 2
        try:
            number = smallest_reaching(error_at, target, now, most, steps=_STEPS) if now < most else None
        except TimeoutError:
            return None
        return None if number is None or number <= now else number


def _round_up(number: float) -> float:
    """To two significant digits: more would pretend that the plan is exact."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return round(math.ceil(number / unit - 1e-9) * unit, 6)


def _box_error(parts: list[CrowdPart], n_boxes: int, share: float) -> float:
    """The root mean square error of a box's share when every set of ticks is as likely as any other.

    As in `plan.population`: with participation hidden the estimate is a ratio, whose variance is that of X − Y/2 over
    N·share², Y being the unbiased count of answers.
    """
    n_workers = sum(part.n_workers for part in parts)
    total = sum(part.n_workers * _box_variance(part.channel, n_boxes, share) for part in parts if part.n_workers)
    return math.sqrt(total) / (n_workers * share)


def _box_variance(channel: Channel, n_boxes: int, share: float) -> float:
    n_sets = 2**n_boxes
    ticked = (np.arange(n_sets)[:, None] >> np.arange(n_boxes)) & 1
    inputs = np.full(n_sets, share / n_sets)
    scores = np.stack([channel.scores(column.astype(float))[0] for column in ticked.T])
    answered = np.ones(scores.shape[1])
    if channel.protects_participation:
        inputs = np.append(inputs, 1 - share)
        answered = channel.scores(np.ones(n_sets))[0]
    residual = scores - 0.5 * answered
    return float(((residual**2 @ channel.table.T) @ inputs).mean())
