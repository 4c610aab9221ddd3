"""How well a crowd's reports can be read, without drawing the crowd: belief propagation followed in distribution.

The estimate of one question needs two things: the reports it gets, and how much is known about each reporter's class
from their other reports. We keep the second as a small set of bins (density evolution; Richardson & Urbanke 2001), so
that one question's reports are counts of (bin, report) pairs and a thousand workers cost no more than ten. The reader
knows neither the mix of workers nor the law of the truths: it has a prior on both, as a real method does.
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
_MOST_BINS = 8
_CELLS = 800_000
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
    known = Knowledge(setting.crowd.believed[None, :], np.ones((len(setting.crowd.real), 1)))
    for _ in range(_ROUNDS if effort >= 1 else _ROUNDS // 2):
        truth, belief = _questions(setting, tensor, known, rng, effort=0.1 * effort)
        known = _learn(setting, tensor, truth, belief, rng, n_draws=int(effort * _SIDE_REPORTS))
    truth, belief = _questions(setting, tensor, known, rng, effort=effort)
    errors = _errors(setting, truth, belief)
    return Prediction(float(errors.mean()), float(errors.std()), float(errors.std()) / math.sqrt(len(errors)))


def _questions(
    setting: Setting, tensor: Floats, known: Knowledge, rng: np.random.Generator, *, effort: float
) -> tuple[NDArray[np.int64], Floats]:
    """Truths, spread evenly, and the posterior over truths that their reports give."""
    mixed = np.tensordot(known.belief, tensor, axes=1).transpose(1, 0, 2)
    n_truths, n_cells, asked = tensor.shape[1], mixed[0].size, setting.asked
    n_questions = int(np.clip(effort * _CELLS / n_cells, 200, 20_000 * effort)) // len(asked) * len(asked) + len(asked)
    truth = asked[np.arange(n_questions) % len(asked)]
    counts = np.zeros((n_questions, n_cells), dtype=np.int64)
    present = zip(setting.crowd.real, setting.crowd.counts(setting.n_workers), strict=True)
    for place, (each, n_workers) in enumerate(present):
        cells = (known.given_class[place][:, None] * tensor[each][:, None, :]).reshape(n_truths, -1)
        n_reports = _report_counts(setting, int(n_workers), n_questions, rng)
        counts += rng.multinomial(n_reports, (cells / cells.sum(axis=1, keepdims=True))[truth])
    log_belief = counts @ np.log(mixed.reshape(n_truths, -1)).T + np.log(setting.prior)
    log_belief -= log_belief.max(axis=1, keepdims=True)
    belief = np.exp(log_belief)
    return truth, belief / belief.sum(axis=1, keepdims=True)


def _report_counts(setting: Setting, n_workers: int, n_questions: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How many of so many workers report on each question."""
    if setting.protect_participation:
        return np.full(n_questions, n_workers)
    return rng.binomial(n_workers, setting.share, n_questions)


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
        return Knowledge(setting.crowd.believed[None, :], np.ones((len(setting.crowd.real), 1)))
    real = setting.crowd.real
    n_pool = int(np.clip(n_draws / (n_side * len(real)), 100, 2000))
    score = np.log(np.tensordot(belief, tensor, axes=(1, 1)).transpose(0, 2, 1))
    posterior = np.empty((len(real), n_pool, n_classes))
    for place, each in enumerate(real.tolist()):
        question = rng.integers(0, len(truth), (n_pool, n_side))
        edges = np.cumsum(tensor[each], axis=1)[:, :-1]
        uniform = rng.random((n_pool, n_side))
        report = _draw(edges, truth[question], uniform)
        log_posterior = np.log(setting.crowd.believed) + score[question, report].sum(axis=1)
        log_posterior -= log_posterior.max(axis=1, keepdims=True)
        posterior[place] = np.exp(log_posterior) / np.exp(log_posterior).sum(axis=1, keepdims=True)
    return _binned(posterior, setting.crowd.rank, n_bins=int(np.clip(_CELLS // 1000 // n_outputs, 2, _MOST_BINS)))


def _draw(edges: Floats, truth: NDArray[np.int64], uniform: Floats) -> NDArray[np.int64]:
    """Outputs by inversion; row t of the edges is moved to [t, t + 1), so that one search serves all rows."""
    n_truths, n_edges = edges.shape
    line = (np.minimum(edges, 1 - 1e-12) + np.arange(n_truths)[:, None]).ravel()
    place: NDArray[np.int64] = np.searchsorted(line, truth + uniform, side="right") - truth * n_edges
    return place


def _binned(posterior: Floats, rank: Floats, n_bins: int) -> Knowledge:
    """Bins of equal size along the rank of the class that is believed: skill is one thing, so one line will do."""
    n_real, n_pool, n_classes = posterior.shape
    flat = posterior.reshape(-1, n_classes)
    order = np.argsort(np.argsort(flat @ rank, kind="stable"), kind="stable")
    place = order * n_bins // len(flat)
    belief = np.stack([flat[place == each].mean(axis=0) for each in range(n_bins)])
    given = np.stack([np.bincount(row, minlength=n_bins) / n_pool for row in place.reshape(n_real, n_pool)])
    return Knowledge(belief, given)


def _errors(setting: Setting, truth: NDArray[np.int64], belief: Floats) -> Floats:
    """The error of the most likely option, or of the posterior median."""
    if not isinstance(setting.domain, Scale):
        wrong: Floats = (belief.argmax(axis=1) != truth).astype(np.float64)
        return wrong
    median = setting.truths[np.argmax(np.cumsum(belief, axis=1) >= 0.5, axis=1)]
    distance: Floats = np.abs(setting.truths[truth] - median)
    return distance
