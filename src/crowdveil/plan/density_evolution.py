"""How well a crowd's reports can be read, without drawing the crowd: belief propagation followed in distribution.

The estimate of one question needs two things: the reports it gets, and how much is known about each reporter's class
from their other reports. We keep the second as a small set of bins (density evolution; Richardson & Urbanke 2001), so
that one question's reports are counts of (bin, report) pairs and a thousand workers cost no more than ten. The reader
knows neither the mix of workers nor the law of the truths: it has a prior on both, as a real method does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.domain import Scale
from crowdveil.inference.priors.truth_grid import TruthGrid, quantiles
from crowdveil.plan.design import CrowdPart, Setting
from crowdveil.plan.study_simulator import by_inversion

Floats = NDArray[np.float64]

_ROUNDS = 4
_MOST_BINS = 8
_CELLS = 800_000
# The median of a number is dearer to find than the likeliest option, and tells more of the error.
_MOST_QUESTIONS, _MOST_NUMBERS = 20_000, 6_000
_SIDE_REPORTS = 200_000
_MOST_SIDE = 400
TINY = 1e-300
"""Stands for a probability of 0, whose logarithm must not meet a count of 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """Bins of what is believed about a worker: `belief` bins × classes, and P(bin | class), classes × bins."""

    belief: Floats
    given_class: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """A part of the crowd, and P(report | truth) through its channel: `tensor` of every class and a reader's truths,
    `laws` of the classes that exist and the truths that are drawn.
    """

    part: CrowdPart
    tensor: Floats
    laws: Floats


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
    return predict_parts(setting, [CrowdPart(channel, setting.n_workers)], effort=effort, seed=seed)


def predict_parts(setting: Setting, parts: Sequence[CrowdPart], *, effort: float = 1.0, seed: int = 0) -> Prediction:
    """The same for workers at several levels of privacy, each with a channel of its own."""
    rng = np.random.default_rng(seed)
    groups = [_group(setting, part) for part in parts]
    knowledge = [_unknown(setting) for _ in groups]
    n_draws = int(effort * _SIDE_REPORTS / len(groups))
    for _ in range(_ROUNDS if effort >= 1 else _ROUNDS // 2):
        truth, log_belief = _questions(setting, groups, knowledge, rng, effort=0.1 * effort)
        belief = _normalize_logs(log_belief + np.log(setting.prior))
        knowledge = [_learn(setting, group, truth, belief, rng, n_draws=n_draws) for group in groups]
    truth, log_belief = _questions(setting, groups, knowledge, rng, effort=effort)
    errors = _errors(setting, truth, log_belief)
    return Prediction(float(errors.mean()), float(errors.std()), float(errors.std()) / math.sqrt(len(errors)))


def _group(setting: Setting, part: CrowdPart) -> _Group:
    answers = setting.crowd.answers(setting.domain, setting.sampled_truths)[setting.crowd.real]
    return _Group(part, setting.reports_given_truth(part.channel), setting.apply_channel(part.channel, answers))


def _normalize_logs(logs: Floats) -> Floats:
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    posterior: Floats = weights / weights.sum(axis=1, keepdims=True)
    return posterior


def _unknown(setting: Setting) -> Knowledge:
    return Knowledge(setting.crowd.believed[None, :], np.ones((len(setting.crowd.real), 1)))


def _questions(
    setting: Setting,
    groups: Sequence[_Group],
    knowledge: Sequence[Knowledge],
    rng: np.random.Generator,
    *,
    effort: float,
) -> tuple[NDArray[np.int64], Floats]:
    """Which of the drawn truths, spread evenly, and what their reports say: log-likelihoods of a reader's truths."""
    n_drawn, bins = len(setting.sampled_truths), [len(group_knowledge.belief) for group_knowledge in knowledge]
    n_cells = sum(n_bins * group.tensor.shape[2] for n_bins, group in zip(bins, groups, strict=True))
    most = _MOST_NUMBERS if isinstance(setting.domain, Scale) else _MOST_QUESTIONS
    n_questions = int(np.clip(effort * _CELLS / n_cells, 200, most * effort)) // n_drawn * n_drawn + n_drawn
    truth = np.arange(n_questions) % n_drawn
    logs = np.zeros((n_questions, len(setting.truths)))
    for group, group_knowledge in zip(groups, knowledge, strict=True):
        logs += _evidence(setting, group, group_knowledge, truth, rng)
    return truth, logs


def _evidence(
    setting: Setting, group: _Group, knowledge: Knowledge, truth: NDArray[np.int64], rng: np.random.Generator
) -> Floats:
    """What one group's reports, drawn as counts, say about each question: log-likelihoods, question × truth."""
    mixed = np.tensordot(knowledge.belief, group.tensor, axes=1).transpose(1, 0, 2)
    n_truths, n_cells = len(mixed), mixed[0].size
    counts = np.zeros((len(truth), n_cells), dtype=np.int64)
    for index, n_workers in enumerate(setting.crowd.counts(group.part.n_workers)):
        cells = (knowledge.given_class[index][:, None] * group.laws[index][:, None, :]).reshape(-1, n_cells)
        n_reports = report_counts(setting, group.part.channel, int(n_workers), len(truth), rng)
        counts += rng.multinomial(n_reports, (cells / cells.sum(axis=1, keepdims=True))[truth])
    evidence: Floats = counts @ np.log(np.maximum(mixed.reshape(n_truths, -1), TINY)).T
    return evidence


def report_counts(
    setting: Setting, channel: Channel, n_workers: int, n_questions: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """How many of so many workers report on each question."""
    if channel.protects_participation:
        return np.full(n_questions, n_workers)
    return rng.binomial(n_workers, setting.share, n_questions)


def _learn(
    setting: Setting,
    group: _Group,
    truth: NDArray[np.int64],
    belief: Floats,
    rng: np.random.Generator,
    *,
    n_draws: int,
) -> Knowledge:
    """What a worker's other reports tell about their class, when the truths are known only as `belief` says."""
    n_classes, _, n_outputs = group.tensor.shape
    n_side = round(min(setting.reports_per_worker(group.part.channel) - 1, _MOST_SIDE))
    if n_side < 1:
        return _unknown(setting)
    real = setting.crowd.real
    n_pool = int(np.clip(n_draws / (n_side * len(real)), 100, 2000))
    score = np.log(np.maximum(np.tensordot(belief, group.tensor, axes=(1, 1)).transpose(0, 2, 1), TINY))
    posterior = np.empty((len(real), n_pool, n_classes))
    for index in range(len(real)):
        question = rng.integers(0, len(truth), (n_pool, n_side))
        edges = np.cumsum(group.laws[index], axis=1)[:, :-1]
        uniform = rng.random((n_pool, n_side))
        report = by_inversion(edges, truth[question], uniform)
        log_posterior = np.log(setting.crowd.believed) + score[question, report].sum(axis=1)
        posterior[index] = _normalize_logs(log_posterior)
    return _bin_posteriors(
        posterior, setting.crowd.rank, n_bins=int(np.clip(_CELLS // 1000 // n_outputs, 2, _MOST_BINS))
    )


def _bin_posteriors(posterior: Floats, rank: Floats, n_bins: int) -> Knowledge:
    """Bins of equal size along the rank of the class that is believed: skill is one thing, so one line will do."""
    n_real, n_pool, n_classes = posterior.shape
    flat = posterior.reshape(-1, n_classes)
    order = np.argsort(np.argsort(flat @ rank, kind="stable"), kind="stable")
    bins = order * n_bins // len(flat)
    belief = np.stack([flat[bins == bin_index].mean(axis=0) for bin_index in range(n_bins)])
    bin_shares = np.stack([np.bincount(row, minlength=n_bins) / n_pool for row in bins.reshape(n_real, n_pool)])
    return Knowledge(belief, bin_shares)


def _errors(setting: Setting, truth: NDArray[np.int64], logs: Floats) -> Floats:
    """The error of the most likely option, or of the posterior median, read off between the reader's points."""
    domain = setting.domain
    if not isinstance(domain, Scale):
        wrong: Floats = ((logs + np.log(setting.prior)).argmax(axis=1) != truth).astype(np.float64)
        return wrong
    points = setting.truths
    grid = TruthGrid(domain.numbers, points, np.gradient(points), np.empty(0, np.int64), np.ones(1))
    (median,) = quantiles(grid, [logs], [np.stack([setting.prior, np.zeros_like(points)])], (0.5,))
    distance: Floats = np.abs(setting.sampled_truths[truth] - median)
    return distance
