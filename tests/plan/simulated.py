"""Whole studies, drawn and inferred with the library's own mechanism and method, to hold the planner against.

Nothing here comes from the planner but the description of a study: answers are drawn cell by cell, perturbed and
inferred as any user would do it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdveil import Answers, Choices, Reports, Scale, entropy_from
from crowdveil.errors import CrowdveilError
from crowdveil.inference import method
from crowdveil.mechanisms import mechanism
from crowdveil.plan import SKILLS, CrowdSkill, Setting
from crowdveil.plan.population import prior_spread
from crowdveil.plan.recommend import FOR_CHOICES, FOR_SCALES, mechanism_channel

OPTIONS = "abcdefghij"
# Errors below this part of a guess's are as good as none: one wrong among a thousand questions of two options.
RESOLUTION = 0.002


@dataclass(frozen=True)
class Case:
    """A study somebody might plan; `mechanism` None leaves the choice to the planner."""

    setting: Setting
    population: bool
    mechanism: str | None

    @property
    def guess(self) -> float:
        """The error of not asking anybody."""
        return prior_spread(self.setting.domain) if self.population else self.setting.baseline_error

    def __str__(self) -> str:
        setting = self.setting
        kind = "levels" if isinstance(setting.domain, Scale) else "options"
        goal = "opinions" if self.population else f"{setting.crowd.name} workers"
        hidden = ", participation protected" if setting.protect_participation else ""
        return (
            f"{setting.domain.size} {kind}, ε {setting.epsilon}, {setting.n_workers} {goal}, share {setting.share}, "
            f"{setting.n_questions} questions{hidden}"
        )


def draw_case(rng: np.random.Generator, *, most_reports: int = 40_000) -> Case:
    """Anything `crowdveil plan` takes, as long as one study can be drawn in about a second."""
    while True:
        population, choices = bool(rng.random() < 0.2), bool(rng.random() < 0.5)
        domain = Choices(tuple(OPTIONS[: rng.integers(2, 11)])) if choices else Scale(0, int(rng.integers(2, 11)))
        setting = Setting(
            domain,
            round(_between(rng, 0.25, 8), 3),
            int(_between(rng, 10, 2001)),
            round(_between(rng, 0.05, 1), 3),
            CrowdSkill.from_name(str(rng.choice(list(SKILLS))), domain),
            n_questions=int(_between(rng, 5, 501)),
            protect_participation=bool(rng.random() < 0.4),
        )
        name = str(rng.choice(FOR_CHOICES if choices else FOR_SCALES)) if rng.random() < 0.5 else None
        reported = 1.0 if setting.protect_participation else setting.share
        if setting.n_workers * setting.n_questions * reported <= most_reports and _try_channel(setting, name):
            return Case(setting, population, name)


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def _try_channel(setting: Setting, name: str | None) -> bool:
    try:
        return name is None or mechanism_channel(name, setting) is not None
    except CrowdveilError:
        return False


@dataclass(frozen=True)
class Simulated:
    """The mean error over `n_studies`, and its standard error."""

    error: float
    noise: float
    n_studies: int


def simulated_error(
    case: Case,
    mechanism_name: str,
    rng: np.random.Generator,
    *,
    settled: Callable[[Simulated], bool],
    fewest: int = 15,
    most: int = 400,
) -> Simulated:
    """Studies drawn and inferred until what they tell settles the matter, or there are too many."""
    made = mechanism(
        mechanism_name, epsilon=case.setting.epsilon, protect_participation=case.setting.protect_participation
    )
    errors: list[float] = []
    while True:
        truth, answers, skill = answers_of(case.setting, rng, population=case.population)
        reports = made.randomize(answers, entropy_from(int(rng.integers(2**62))))
        errors.append(float(errors_of(case.setting, truth, reports, skill, population=case.population).mean()))
        mean, noise = float(np.mean(errors)), float(np.std(errors)) / math.sqrt(len(errors))
        if case.population:
            mean, noise = math.sqrt(mean), noise / (2 * math.sqrt(mean))
        found = Simulated(mean, noise, len(errors))
        if len(errors) >= most or (len(errors) >= fewest and settled(found)):
            return found


def errors_of(
    setting: Setting, truth: np.ndarray, reports: Reports, skill: np.ndarray, *, population: bool = False
) -> np.ndarray:
    """How far off our own method is, question by question (squared, for opinions); where nobody reported, it guesses.

    On choices it is the probability that the estimate is wrong given the reports and what each worker is really like:
    on average as often as it is wrong, with far less noise.
    """
    if population:
        estimate = method("population-mean" if isinstance(setting.domain, Scale) else "frequency").fit(reports)
        found = estimate.value[:, None] if isinstance(setting.domain, Scale) else estimate.posterior
        return np.where(estimate.answered, ((found - truth) ** 2).mean(axis=1), prior_spread(setting.domain) ** 2)
    if isinstance(setting.domain, Scale):
        estimate = method("channel-em").fit(reports)
        guess = float(setting.domain.numbers.mean())
        return np.abs(np.where(estimate.answered, estimate.value, guess) - truth)
    estimate = method("channel-bp").fit(reports)
    value = np.where(estimate.answered, estimate.value, 0)
    return 1 - _true_posterior(setting, reports, skill)[np.arange(len(value)), value]


def _true_posterior(setting: Setting, reports: Reports, skill: np.ndarray) -> np.ndarray:
    """P(truth | reports, what every worker is like), question × option; options are equally likely beforehand."""
    n_options, right = setting.domain.size, skill[reports.worker]
    logs = np.zeros((reports.n_questions, n_options))
    for index, channel in enumerate(reports.channels):
        rows = np.flatnonzero(reports.channel == index)
        given = channel.likelihood(reports.report[rows])
        options, able = given[:, :n_options], right[rows, None]
        chance = able * options + (1 - able) / (n_options - 1) * (options.sum(axis=1, keepdims=True) - options)
        if channel.protects_participation:
            chance = setting.share * chance + (1 - setting.share) * given[:, n_options:]
        for option in range(n_options):
            logs[:, option] += np.bincount(
                reports.question[rows], np.log(chance[:, option]), minlength=reports.n_questions
            )
    posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
    return posterior / posterior.sum(axis=1, keepdims=True)


def answers_of(
    setting: Setting, rng: np.random.Generator, *, population: bool = False
) -> tuple[np.ndarray, Answers, np.ndarray]:
    """Truths spread evenly, the answers of the planned crowd, and its skills; or evenly spread opinions."""
    domain, shape = setting.domain, (setting.n_workers, setting.n_questions)
    skill = np.repeat(setting.crowd.skill[setting.crowd.real], setting.crowd.counts(setting.n_workers))
    if population:
        scale = isinstance(domain, Scale)
        truth = np.array([domain.numbers.mean()]) if scale else np.full(domain.size, 1 / domain.size)
        grid = rng.integers(0, domain.size, shape)
    elif isinstance(domain, Scale):
        truth = rng.uniform(float(domain.low), float(domain.high), setting.n_questions)
        believed = (truth + skill[:, None] * rng.normal(size=shape) - float(domain.low)) / float(domain.step)
        grid = np.clip(np.rint(believed), 0, domain.size - 1).astype(np.int32)
    else:
        truth = rng.integers(0, domain.size, setting.n_questions)
        wrong = (truth + rng.integers(1, domain.size, shape)) % domain.size
        grid = np.where(rng.random(shape) < skill[:, None], truth, wrong)
    worker, question = np.nonzero(rng.random(shape) < setting.share)
    ids = (np.arange(setting.n_workers), np.arange(setting.n_questions))
    return truth, Answers(worker, question, grid[worker, question], *ids, domain), skill
