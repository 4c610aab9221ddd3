"""Whole studies, drawn and inferred with the library's own mechanism and method, to hold the planner against."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crowdveil import Answers, Choices, Scale, entropy_from
from crowdveil.inference import METHODS
from crowdveil.mechanisms import mechanism
from crowdveil.plan import SKILLS, Crowd, Setting


@dataclass(frozen=True)
class Drawn:
    """A setting with the kind of estimate that is wanted."""

    setting: Setting
    population: bool

    @property
    def method(self) -> str:
        scale = isinstance(self.setting.domain, Scale)
        if self.population:
            return "population-mean" if scale else "frequency"
        return "channel-em" if scale else "channel-bp"


def draw_setting(rng: np.random.Generator) -> Drawn:
    """Any study that a person might plan on one computer."""
    kind = rng.choice(["choices", "scale", "population"], p=[0.45, 0.4, 0.15])
    if kind == "choices" or (kind == "population" and rng.random() < 0.5):
        domain: Choices | Scale = Choices(tuple("abcdef"[: rng.integers(2, 7)]))
    else:
        domain = Scale(0, int(rng.integers(3, 10)))
    setting = Setting(
        domain,
        round(float(np.exp(rng.uniform(np.log(0.4), np.log(4.0)))), 2),
        int(np.exp(rng.uniform(np.log(30), np.log(800)))),
        round(float(rng.uniform(0.1, 1.0)), 2),
        Crowd.named(str(rng.choice(list(SKILLS))), domain),
        n_questions=int(rng.integers(40, 200)),
        protect_participation=bool(rng.random() < 0.3),
    )
    return Drawn(setting, kind == "population")


def simulated_error(drawn: Drawn, mechanism_name: str, rng: np.random.Generator) -> tuple[float, float]:
    """The mean error over studies until its standard error is small, and that standard error."""
    errors: list[float] = []
    for _ in range(60):
        errors.append(_one_study(drawn, mechanism_name, rng))
        if len(errors) >= 6 and np.std(errors) / math.sqrt(len(errors)) < 0.04 * np.mean(errors):
            break
    mean, spread = float(np.mean(errors)), float(np.std(errors)) / math.sqrt(len(errors))
    return (math.sqrt(mean), spread / (2 * math.sqrt(mean))) if drawn.population else (mean, spread)


def _one_study(drawn: Drawn, mechanism_name: str, rng: np.random.Generator) -> float:
    setting = drawn.setting
    truth, answers = _answers(drawn, rng)
    made = mechanism(mechanism_name, epsilon=setting.epsilon, protect_participation=setting.protect_participation)
    reports = made.randomize(answers, entropy_from(int(rng.integers(2**62))))
    estimate = METHODS[drawn.method]().fit(reports)
    if drawn.population:
        return _population_square(setting, estimate)
    if isinstance(setting.domain, Scale):
        return float(np.abs(np.where(estimate.answered, estimate.value, np.mean(setting.truths)) - truth).mean())
    return float((estimate.value != truth).mean())


def _population_square(setting: Setting, estimate: object) -> float:
    if isinstance(setting.domain, Scale):
        return float(np.mean((estimate.value - setting.domain.numbers.mean()) ** 2))
    return float(np.mean((estimate.posterior - 1 / setting.domain.size) ** 2))


def _answers(drawn: Drawn, rng: np.random.Generator) -> tuple[np.ndarray, Answers]:
    """Truths spread evenly and the answers of a crowd; for populations, opinions spread evenly."""
    setting, domain = drawn.setting, drawn.setting.domain
    shape = (setting.n_workers, setting.n_questions)
    skill = rng.choice(setting.crowd.skill, setting.n_workers, p=setting.crowd.shares)[:, None]
    if drawn.population:
        truth, grid = np.zeros(setting.n_questions), rng.integers(0, domain.size, shape)
    elif isinstance(domain, Scale):
        truth = rng.uniform(float(domain.low), float(domain.high), setting.n_questions)
        believed = (truth + skill * rng.normal(size=shape) - float(domain.low)) / float(domain.step)
        grid = np.clip(np.rint(believed), 0, domain.size - 1)
    else:
        truth = rng.integers(0, domain.size, setting.n_questions)
        wrong = (truth + rng.integers(1, domain.size, shape)) % domain.size
        grid = np.where(rng.random(shape) < skill, truth, wrong)
    worker, question = np.nonzero(rng.random(shape) < setting.share)
    ids = (np.arange(setting.n_workers), np.arange(setting.n_questions))
    return truth, Answers(worker, question, grid[worker, question], *ids, domain)
