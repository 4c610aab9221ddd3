"""How well a crowd's reports can be read, without drawing the crowd: belief propagation followed in distribution.

The estimate of one question needs two things: the reports it gets, and how much is known about each reporter's class
from their other reports. We keep the second as a small set of bins (density evolution; Richardson & Urbanke 2001), so
that one question's reports are counts of (bin, report) pairs and a thousand workers cost no more than ten. Errors are
those of the posterior itself, which has less variance than counting mistakes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.domain import Scale
from crowdveil.plan.setting import Setting

Floats = NDArray[np.float64]

_ROUNDS = 4
_MOST_BINS = 12
_CELLS = 1_500_000
_SIDE_REPORTS = 200_000
_MOST_SIDE = 400


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """Bins of what is believed about a worker: `belief` bins × classes, and P(bin | class), classes × bins."""

    belief: Floats
    given_class: Floats


@dataclass(frozen=True, slots=True)
class Prediction:
    """The expected error of one question, its spread from question to question, and the planner's own uncertainty."""

    error: float
    spread: float
    standard_error: float


def predict(setting: Setting, channel: Channel, *, effort: float = 1.0, seed: int = 0) -> Prediction:
    """The error to expect from an inference that knows the channel and learns the workers' classes as it goes.

    `effort` below 1 trades precision for time; the same seed gives the same draws, so that settings compare fairly.
    """
    rng = np.random.default_rng(seed)
    tensor = setting.reports_given_truth(channel)
    known = Knowledge(setting.crowd.shares[None, :], np.ones((len(setting.crowd.shares), 1)))
    if len(setting.crowd.shares) > 1:
        for _ in range(_ROUNDS if effort >= 1 else _ROUNDS // 2):
            truth, belief = _questions(setting, tensor, known, rng, effort=0.25 * effort)
            known = _learn(setting, tensor, truth, belief, rng, n_draws=int(effort * _SIDE_REPORTS))
    truth, belief = _questions(setting, tensor, known, rng, effort=effort)
    expected, happened = _errors(setting, truth, belief)
    own = float(expected.std()) / math.sqrt(len(truth))
    return Prediction(float(expected.mean()), float(happened.std()), own)


def _questions(
    setting: Setting, tensor: Floats, known: Knowledge, rng: np.random.Generator, *, effort: float
) -> tuple[NDArray[np.int64], Floats]:
    """Truths, spread evenly, and the posterior over truths that their reports give."""
    mixed = np.einsum("bc,ctr->tbr", known.belief, tensor)
    drawn = np.einsum("c,cb,ctr->tbr", setting.crowd.shares, known.given_class, tensor)
    n_truths, n_cells = tensor.shape[1], mixed[0].size
    n_questions = int(np.clip(effort * _CELLS / n_cells, 200, 4000 * effort)) // n_truths * n_truths + n_truths
    truth = np.arange(n_questions) % n_truths
    cells = drawn.reshape(n_truths, -1)
    counts = rng.multinomial(
        _report_counts(setting, n_questions, rng), (cells / cells.sum(axis=1, keepdims=True))[truth]
    )
    log_belief = counts @ np.log(mixed.reshape(n_truths, -1)).T
    log_belief -= log_belief.max(axis=1, keepdims=True)
    belief = np.exp(log_belief)
    return truth, belief / belief.sum(axis=1, keepdims=True)


def _report_counts(setting: Setting, n_questions: int, rng: np.random.Generator) -> NDArray[np.int64]:
    if setting.protect_participation:
        return np.full(n_questions, setting.n_workers)
    return rng.binomial(setting.n_workers, setting.share, n_questions)


def _learn(
    setting: Setting,
    tensor: Floats,
    truth: NDArray[np.int64],
    belief: Floats,
    rng: np.random.Generator,
    *,
    n_draws: int,
) -> Knowledge:
    """What a worker's other reports tell about their class, when the truths are known only as `belief` says."""
    n_classes, _, n_outputs = tensor.shape
    n_side = round(min(setting.reports_per_worker - 1, _MOST_SIDE))
    if n_side < 1:
        return Knowledge(setting.crowd.shares[None, :], np.ones((n_classes, 1)))
    n_pool = int(np.clip(n_draws / (n_side * n_classes), 100, 2000))
    score = np.log(np.einsum("jt,ctr->jrc", belief, tensor))
    posterior = np.empty((n_classes, n_pool, n_classes))
    for each in range(n_classes):
        question = rng.integers(0, len(truth), (n_pool, n_side))
        edges = np.cumsum(tensor[each], axis=1)[:, :-1]
        uniform = rng.random((n_pool, n_side))
        report = _draw(edges, truth[question], uniform)
        log_posterior = np.log(setting.crowd.shares) + score[question, report].sum(axis=1)
        log_posterior -= log_posterior.max(axis=1, keepdims=True)
        posterior[each] = np.exp(log_posterior) / np.exp(log_posterior).sum(axis=1, keepdims=True)
    return _binned(posterior, n_bins=int(np.clip(_CELLS // 2000 // n_outputs, 2, _MOST_BINS)))


def _draw(edges: Floats, truth: NDArray[np.int64], uniform: Floats) -> NDArray[np.int64]:
    """Outputs by inversion, truth by truth."""
    report = np.empty(truth.shape, dtype=np.int64)
    for each in range(len(edges)):
        mine = truth == each
        report[mine] = np.searchsorted(edges[each], uniform[mine], side="right")
    return report


def _binned(posterior: Floats, n_bins: int) -> Knowledge:
    """Bins of equal size along the belief in the first classes: enough for the two or three classes we plan with."""
    n_classes, n_pool, _ = posterior.shape
    flat = posterior.reshape(-1, n_classes)
    weight = np.arange(n_classes, 0, -1, dtype=float)
    rank = np.argsort(np.argsort(flat @ weight, kind="stable"), kind="stable")
    place = rank * n_bins // len(flat)
    belief = np.stack([flat[place == each].mean(axis=0) for each in range(n_bins)])
    given = np.stack([np.bincount(row, minlength=n_bins) / n_pool for row in place.reshape(n_classes, n_pool)])
    return Knowledge(belief, given)


def _errors(setting: Setting, truth: NDArray[np.int64], belief: Floats) -> tuple[Floats, Floats]:
    """What each posterior says about its own error, and what that error was."""
    if not isinstance(setting.domain, Scale):
        return 1 - belief.max(axis=1), (belief.argmax(axis=1) != truth).astype(float)
    truths = setting.truths
    middle = truths[np.argmax(np.cumsum(belief, axis=1) >= 0.5, axis=1)]
    expected: Floats = (belief * np.abs(truths - middle[:, None])).sum(axis=1)
    return expected, np.abs(truths[truth] - middle)
