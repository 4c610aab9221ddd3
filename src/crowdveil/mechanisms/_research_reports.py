"""How research mechanisms, which have no channel to draw through, turn what they release into reports."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.channel import Channel
from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.domain import Domain
from crowdveil.entropy import Entropy, below, uniforms
from crowdveil.errors import DomainError, UnservableError
from crowdveil.reports import Reports

Rows: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]
Fill: TypeAlias = Literal["middle", "random"] | int | float


def answered_rows(answers: Answers) -> Rows:
    """Worker, question and answer of what was answered."""
    answered = answers.answer >= 0
    return answers.worker[answered], answers.question[answered], answers.answer[answered]


def all_rows(answers: Answers) -> Rows:
    """Worker, question and answer (∅ = -1) of every worker × question pair."""
    n_workers, n_questions = len(answers.workers), len(answers.questions)
    worker = np.repeat(np.arange(n_workers, dtype=np.int32), n_questions)
    question = np.tile(np.arange(n_questions, dtype=np.int32), n_workers)
    return worker, question, answers.grid().ravel()


def shift_codes(codes: NDArray[Any], shift: NDArray[Any], n_symbols: int) -> NDArray[np.int32]:
    """Each code moved on by its shift, around the end."""
    moved: NDArray[np.int32] = ((codes + shift) % n_symbols).astype(np.int32)
    return moved


def coded_reports(
    answers: Answers, worker: NDArray[Any], question: NDArray[Any], report: NDArray[Any], channel: Channel
) -> Reports:
    index = np.zeros(len(report), dtype=np.int16)
    return Reports(worker, question, report, index, answers.workers, answers.questions, (channel,), answers.domain)


def number_reports(
    answers: Answers, worker: NDArray[Any], question: NDArray[Any], number: NDArray[np.float64], record: NoiseRecord
) -> Reports:
    return Reports(
        worker,
        question,
        np.full(len(number), -1, dtype=np.int32),
        np.zeros(len(number), dtype=np.int16),
        answers.workers,
        answers.questions,
        (record,),
        answers.domain,
        number,
    )


def fill_empty(domain: Domain, answer: NDArray[Any], fill: Fill, entropy: Entropy) -> NDArray[np.float64]:
    """Answers as numbers; ∅ becomes the middle of the range, a random level, or a given number (Sun, eq. 6)."""
    numbers = domain.numbers
    value = np.append(numbers, filler(domain, fill))[answer]
    if fill == "random":
        value = np.where(answer < 0, numbers[below(entropy, len(answer), len(numbers))], value)
    return np.asarray(value, dtype=np.float64)


def filler(domain: Domain, fill: Fill) -> float:
    """The public number that stands for ∅ (the middle while a random level is still to be drawn)."""
    numbers = domain.numbers
    if fill in ("middle", "random"):
        return float(numbers.min() + numbers.max()) / 2
    if isinstance(fill, str) or not numbers.min() <= fill <= numbers.max():
        raise DomainError(f"fill must be middle, random or a number within the levels; got {fill!r}")
    return float(fill)


def number_range(domain: Domain) -> float:
    """The width of the levels: the most that one answer can move a number."""
    try:
        width = float(np.ptp(domain.numbers))
    except DomainError as refusal:
        raise UnservableError(
            "this mechanism adds noise to numbers; got options that are none", fix="use randomized-response for options"
        ) from refusal
    if not width:
        raise UnservableError("this mechanism hides one number among others; got only one", fix="use mechanism none")
    return width


def laplace_noise(entropy: Entropy, n: int, scale: float) -> NDArray[np.float64]:
    """Laplace noise by inversion: in floating point, hence for research only."""
    return laplace_quantile(uniforms(entropy, n), scale)


def laplace_quantile(uniform: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """−scale·sign(c)·ln(1 − 2|c|) with c = u − ½, rising with u: the audit asks which reports it can reach."""
    centred = uniform - 0.5
    noise: NDArray[np.float64] = -scale * np.sign(centred) * np.log1p(-2 * np.abs(centred))
    return noise


def normal_noise(entropy: Entropy, n: int, sigma: float) -> NDArray[np.float64]:
    """Gaussian noise by Box and Muller: in floating point, hence for research only."""
    radius = np.sqrt(-2 * np.log(uniforms(entropy, n)))
    noise: NDArray[np.float64] = sigma * radius * np.cos(2 * np.pi * uniforms(entropy, n))
    return noise
