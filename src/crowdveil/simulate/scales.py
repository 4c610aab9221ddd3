"""Crowds that rate on a scale: truth plus a worker's own error, rounded and clipped (Sun et al. 2018, §VI)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import Scale
from crowdveil.errors import InputError
from crowdveil.simulate.crowd import (
    LARGEST,
    Codes,
    Crowd,
    are_shares,
    draw_answers,
    draw_participation,
    generator,
    numbered_answers,
)
from crowdveil.validation import COUNT, Count, Rule, Share, check_settings

TRUTHS: dict[str, Callable[[np.random.Generator, int, Scale], NDArray[np.float64]]] = {
    "normal": lambda rng, n, scale: rng.normal(0.0, 1.0, n),
    "uniform": lambda rng, n, scale: rng.uniform(float(scale.low), float(scale.high), n),
    "middle": lambda rng, n, scale: rng.normal(float(scale.low + scale.high) / 2, scale.range / 6, n),
}
"""Laws of the truth: N(0, 1) wherever the scale lies (Sun), uniform on the scale, or gathered around its middle."""

_SIGMAS = Rule(
    "numbers from 0 up, of ordinary size", lambda sigmas: sigmas and all(0 <= sigma <= LARGEST for sigma in sigmas)
)
_SHIFT = Rule("a standard deviation, 0 or more, of ordinary size", lambda shift: 0 <= shift <= LARGEST)
_LEVELS = Rule(
    "names with numbers from 0 up, not all 0", lambda levels: not levels or are_shares([share for _, share in levels])
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleCrowd:
    """Workers whose answer is the level nearest to N(truth + their own shift, σ²), clipped to the scale.

    >>> crowd = ScaleCrowd(n_workers=20, n_questions=3, domain=Scale(0, 9), share=1.0, truth="uniform").draw(seed=1)
    >>> crowd.answers.grid().shape, bool(abs(crowd.answers.grid().mean(axis=0) - crowd.truth).max() < 3)
    ((20, 3), True)
    """

    n_workers: Count
    n_questions: Count
    domain: Scale
    sigmas: Annotated[tuple[float, ...], _SIGMAS] = (1.0, 5.0)
    shift: Annotated[float, _SHIFT] = 0.0
    share: Share = 0.1
    answers_per_worker: Annotated[int | None, COUNT] = None
    truth: str = "normal"
    levels: Annotated[tuple[tuple[str, float], ...], _LEVELS] = ()

    def __post_init__(self) -> None:
        check_settings(self)
        if self.truth not in TRUTHS:
            raise InputError(f"truth must be one of {', '.join(TRUTHS)}; got {self.truth!r}")

    def draw(self, seed: int | None = None) -> Crowd:
        rng = generator(seed)
        truth = TRUTHS[self.truth](rng, self.n_questions, self.domain)
        # Equally many workers of each σ, in random order.
        sigma = rng.permutation(np.resize(np.array(self.sigmas, dtype=np.float64), self.n_workers))
        shift = rng.normal(0.0, self.shift, self.n_workers) if self.shift else np.zeros(self.n_workers)
        notes: dict[str, NDArray[Any]] = {"level": _levels(self.levels, self.n_workers, rng)} if self.levels else {}
        worker, question = draw_participation(
            self.n_workers, self.n_questions, self.share, self.answers_per_worker, rng
        )

        def draw(worker: Codes, question: Codes) -> Codes:
            error = sigma[worker] * rng.standard_normal(len(worker))
            return nearest(truth[question] + shift[worker] + error, self.domain)

        answer = draw_answers(worker, question, draw)
        answers = numbered_answers(worker, question, answer, self.n_workers, self.n_questions, self.domain)
        return Crowd(answers, truth, sigma, notes)


def nearest(numbers: NDArray[np.float64], scale: Scale) -> NDArray[np.int32]:
    """The code of the level nearest to each number, clipped to the scale."""
    code = np.rint((numbers - float(scale.low)) / float(scale.step))
    return np.clip(code, 0, scale.size - 1).astype(np.int32)


def _levels(levels: tuple[tuple[str, float], ...], n: int, rng: np.random.Generator) -> NDArray[Any]:
    named = np.array([name for name, _ in levels], dtype=object)
    shares = np.array([share for _, share in levels])
    return named[rng.choice(len(named), n, p=shares / shares.sum())]
