"""Whole studies, drawn and inferred with the library's own mechanism and method, to hold the planner against."""

from __future__ import annotations

import math

import numpy as np

from crowdveil import Answers, Choices, Reports, Scale, entropy_from
from crowdveil.inference import method
from crowdveil.mechanisms import mechanism
from crowdveil.plan import SKILLS, Crowd, Setting


def method_of(setting: Setting) -> str:
    return "channel-em" if isinstance(setting.domain, Scale) else "channel-bp"


def draw_setting(rng: np.random.Generator) -> Setting:
    """Any study of truths that a person might try out on one computer."""
    choices = rng.random() < 0.5
    domain = Choices(tuple("abcdef"[: rng.integers(2, 7)])) if choices else Scale(0, int(rng.integers(3, 10)))
    return Setting(
        domain,
        round(float(np.exp(rng.uniform(np.log(0.4), np.log(4.0)))), 2),
        int(np.exp(rng.uniform(np.log(30), np.log(250)))),
        round(float(rng.uniform(0.1, 1.0)), 2),
        Crowd.named(str(rng.choice(list(SKILLS))), domain),
        n_questions=int(rng.integers(40, 100)),
        protect_participation=bool(rng.random() < 0.3),
    )


def simulated_error(
    setting: Setting, mechanism_name: str, rng: np.random.Generator, *, most: int = 40, precision: float = 0.06
) -> tuple[float, float]:
    """The mean error over studies until its relative standard error is small, and that standard error."""
    errors: list[float] = []
    while len(errors) < most:
        errors.append(_one_study(setting, mechanism_name, rng))
        if len(errors) >= 6 and np.std(errors) / math.sqrt(len(errors)) < precision * np.mean(errors):
            break
    return float(np.mean(errors)), float(np.std(errors)) / math.sqrt(len(errors))


def _one_study(setting: Setting, mechanism_name: str, rng: np.random.Generator) -> float:
    truth, answers = answers_of(setting, rng)
    made = mechanism(mechanism_name, epsilon=setting.epsilon, protect_participation=setting.protect_participation)
    reports = made.randomize(answers, entropy_from(int(rng.integers(2**62))))
    return float(errors_of(setting, truth, reports).mean())


def errors_of(setting: Setting, truth: np.ndarray, reports: Reports, *, population: bool = False) -> np.ndarray:
    """How far off our own method is, question by question; where nobody reported it is a guess."""
    scale = isinstance(setting.domain, Scale)
    if population:
        estimate = method("population-mean" if scale else "frequency").fit(reports)
        found = estimate.value[:, None] if scale else estimate.posterior
        return np.sqrt(((found - truth) ** 2).mean(axis=1))
    estimate = method(method_of(setting)).fit(reports)
    if scale:
        guess = float(setting.domain.numbers.mean())
        return np.abs(np.where(estimate.answered, estimate.value, guess) - truth)
    return (np.where(estimate.answered, estimate.value, 0) != truth).astype(float)


def answers_of(setting: Setting, rng: np.random.Generator, *, population: bool = False) -> tuple[np.ndarray, Answers]:
    """Truths spread evenly, and the answers of the planned crowd; or evenly spread opinions, and what they average."""
    domain, shape = setting.domain, (setting.n_workers, setting.n_questions)
    skill = np.repeat(setting.crowd.skill[setting.crowd.real], setting.crowd.counts(setting.n_workers))[:, None]
    if population:
        truth = (
            np.array([domain.numbers.mean()]) if isinstance(domain, Scale) else np.full(domain.size, 1 / domain.size)
        )
        grid = rng.integers(0, domain.size, shape)
    elif isinstance(domain, Scale):
        truth = rng.uniform(float(domain.low), float(domain.high), setting.n_questions)
        believed = (truth + skill * rng.normal(size=shape) - float(domain.low)) / float(domain.step)
        grid = np.clip(np.rint(believed), 0, domain.size - 1).astype(np.int32)
    else:
        truth = rng.integers(0, domain.size, setting.n_questions)
        wrong = (truth + rng.integers(1, domain.size, shape)) % domain.size
        grid = np.where(rng.random(shape) < skill, truth, wrong)
    worker, question = np.nonzero(rng.random(shape) < setting.share)
    ids = (np.arange(setting.n_workers), np.arange(setting.n_questions))
    return truth, Answers(worker, question, grid[worker, question], *ids, domain)
