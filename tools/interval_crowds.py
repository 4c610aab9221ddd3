"""Crowds that rate on a scale, and what the 95 % intervals of a method hold of them: shared by the interval tools."""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crowdveil import Answers, Reports, Scale
from crowdveil.entropy import entropy_from
from crowdveil.errors import CrowdveilError
from crowdveil.inference import method
from crowdveil.mechanisms import mechanism

Floats = NDArray[np.float64]
_DUST = 1e-9


@dataclass(frozen=True, slots=True)
class Crowd:
    """Answers about known truths, and the law of the answers to every question."""

    answers: Answers
    truth: Floats
    law: Floats

    def target(self, name: str) -> Floats:
        """What the intervals of a method are about: the truth, or what the crowd thinks."""
        numbers = self.answers.domain.numbers
        return {"population-mean": self.law @ numbers, "frequency": self.law}.get(name, self.truth)


@dataclass(frozen=True, slots=True)
class Held:
    """How many targets the intervals hold, and as shares of the scale their length, the whole ones and the error."""

    held: float
    length: float
    whole: float
    error: float

    @property
    def as_promised(self) -> bool:
        """Neither too few nor, which makes intervals longer than they need be, too many."""
        return 0.9 <= self.held <= 0.98


def drawn_answerers(n_workers: int, n_questions: int, each: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Worker and question of every answer: `each` workers for a question, all of them different."""
    worker = np.concatenate([rng.choice(n_workers, each, replace=False) for _ in range(n_questions)])
    return worker.astype(np.int32), np.repeat(np.arange(n_questions, dtype=np.int32), each)


def law_of(truth: Floats, top: int, sigmas: Sequence[float], biases: Sequence[float], guessing: float = 0) -> Floats:
    """The shares of the levels 0 … top among answers of workers with these σ and biases, a share of them guessed."""
    edges, below = np.arange(top) + 0.5, np.zeros((len(truth), top))
    for sigma, bias in zip(sigmas, biases, strict=True):
        below += ndtr((edges - truth[:, None] - bias) / sigma) / len(sigmas)
    law: Floats = (1 - guessing) * np.diff(below, axis=1, prepend=0.0, append=1.0) + guessing / (top + 1)
    return law


def crowd_of(
    asked: tuple[Any, Any], answer: Floats, truth: Floats, law: Floats, *, n_workers: int, low: int = 0
) -> Crowd:
    """Answers and truths counted from the lowest level, on a scale that begins at `low`."""
    ids, scale = (np.arange(n_workers), np.arange(len(truth))), Scale(low, low + law.shape[1] - 1)
    return Crowd(Answers(*asked, answer.astype(np.int32), *ids, scale), truth + low, law)


def reported(answers: Answers, name: str | None, epsilon: float, rng: np.random.Generator, **hiding: bool) -> Reports:
    """What leaves the devices by the mechanism of that name; without one, the answers."""
    if name is None:
        return Reports.unprotected(answers)
    chosen = mechanism(name, epsilon=epsilon, **hiding)
    return chosen.randomize(answers, entropy_from(int(rng.integers(2**31))))


def counted(name: str, reports: Reports, crowd: Crowd) -> Held | None:
    """What the method's intervals hold; None where it refuses, since votes of some channels cannot be unbiased."""
    try:
        estimate = method(name).fit(reports)
    except CrowdveilError:
        return None
    target, top, known = crowd.target(name), crowd.law.shape[1] - 1.0, np.isfinite(estimate.value)
    low, high, found = estimate.low, estimate.high, estimate.value
    bottom = float(crowd.answers.domain.numbers[0])
    if name == "frequency":
        low, high, found = estimate.parameters["low"], estimate.parameters["high"], np.asarray(estimate.posterior)
        bottom, top = 0.0, 1.0
    held = (low <= target + _DUST) & (target - _DUST <= high)
    whole = (low <= bottom + _DUST) & (high >= bottom + top - _DUST)
    columns = (held, (high - low) / top, whole, np.abs(found - target) / top)
    return Held(*(float(column[known].mean()) for column in columns))


def say(*what: object) -> None:
    sys.stdout.write(" ".join(map(str, what)) + "\n")
    sys.stdout.flush()


def arguments(about: str, methods: Iterable[str], **numbers: int) -> argparse.Namespace:
    """The methods, the seed, which is drawn anew where none is given, and these numbers with their defaults."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("methods", nargs="*", default=list(methods))
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    for name, usual in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    return parser.parse_args()
