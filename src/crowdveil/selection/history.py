"""What past reports tell about each worker's distance from the crowd, noise included (Kandappu 2015, §4.5.3.1).

The deviation of worker i on past question j is d_ij = report − average report (4.6). A group's deviation on a question
is the mean of its members' (4.8), which is why selection only ever needs sums of these rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from crowdveil.answers import check_unique
from crowdveil.channel import Channel
from crowdveil.domain import Scale
from crowdveil.errors import InputError
from crowdveil.reports import Reports
from crowdveil.selection.deviation_model import Opinions, Past
from crowdveil.selection.estimator import Estimator

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Deviations of every worker (row) on every past question (column; for choices, on every option of it).

    For (4.12), row i is the worker's shrunken `mean[i]` everywhere plus the sparse `rest`; `noise` is a worker's mean
    noise variance, `average_noise` that of the crowd's average on each column, `norm` is |row|² and `own` noise of the
    new question beyond what past deviations already hold. `opinions` is what the reports predict of new questions,
    `estimator` how a broker estimates a new one in this domain.
    """

    workers: NDArray[Any]
    rest: csr_matrix
    average_noise: Floats
    mean: Floats
    norm: Floats
    noise: Floats
    own: Floats
    unseen_variance: float
    opinions: Opinions
    estimator: Estimator

    @property
    def n_columns(self) -> int:
        return int(self.rest.shape[1])

    @property
    def n_workers(self) -> int:
        """Those with reports: the crowd whose average is to be estimated."""
        return int((np.diff(self.rest.indptr) > 0).sum())

    @property
    def own_scatter(self) -> Floats:
        """What of a worker's scatter is shared with nobody; of workers without reports nothing is known."""
        opinions = self.opinions
        scatter: Floats = np.where(
            np.diff(self.rest.indptr) > 0, opinions.scatter - np.square(opinions.camp).sum(axis=1), 0.0
        )
        return scatter

    @classmethod
    def from_reports(cls, reports: Reports) -> History:
        """Read the history from noisy reports, their noise taken from the channels."""
        _check(reports)
        worker, column, value, variance, n_columns = _entries(reports)
        arithmetic = _History(worker, column, value, variance, reports.n_workers, n_columns)
        estimator = Estimator.INVERSE_VARIANCE if _numeric(reports) else Estimator.FREQUENCY
        past = Past(worker, column, value, variance, (reports.n_workers, n_columns))
        opinions = past.opinions(max(n_columns // max(reports.n_questions, 1), 1))
        return arithmetic.finish(reports.workers, opinions, estimator)


class _History:
    """The arithmetic of `History`, step by step on one entry per seen cell."""

    def __init__(
        self, worker: NDArray[Any], column: NDArray[Any], value: Floats, variance: Floats, n_rows: int, n_columns: int
    ) -> None:
        self.worker, self.column, self.variance, self.shape = worker, column, variance, (n_rows, n_columns)
        self.crowd = np.maximum(np.bincount(column, minlength=n_columns), 1).astype(np.float64)
        average = np.bincount(column, value, minlength=n_columns) / self.crowd
        self.deviation = value - average[column]
        self.seen = np.bincount(worker, minlength=n_rows)

    def per_worker(self, weights: Floats) -> Floats:
        sums: Floats = np.bincount(self.worker, weights, minlength=self.shape[0]).astype(np.float64)
        return sums

    def finish(self, workers: NDArray[Any], opinions: Opinions, estimator: Estimator) -> History:
        n_columns, missing = self.shape[1], self.shape[1] - self.seen
        mean, unseen = self.shrunken_means()
        counts = np.maximum(self.seen, 1)
        noise = np.where(self.seen, self.per_worker(self.variance) / counts, self.variance.mean())
        squares = self.per_worker(self.deviation**2)
        return History(
            workers,
            csr_matrix((self.deviation - mean[self.worker], (self.worker, self.column)), shape=self.shape),
            np.bincount(self.column, self.variance, minlength=n_columns) / self.crowd**2,
            mean,
            squares + missing * mean**2,
            noise,
            noise - self.per_worker(self.variance) / n_columns + missing / n_columns * unseen,
            self.unseen_of_stranger(),
            opinions,
            estimator,
        )

    def shrunken_means(self) -> tuple[Floats, Floats]:
        """Each worker's mean deviation (4.6), shrunk towards 0, and the variance of a cell that was not seen."""
        within, between = self.spreads
        plain = self.per_worker(self.deviation) / np.maximum(self.seen, 1)
        weight = self.seen * between / (self.seen * between + within) if between > 0 else np.zeros(self.shape[0])
        true_within = max(within - float(self.variance.mean()), 0.0)
        return weight * plain, true_within + (1 - weight) * between

    @cached_property
    def spreads(self) -> tuple[float, float]:
        """Variance of deviations inside a worker, and of the workers' means between them (method of moments)."""
        counts = np.maximum(self.seen, 1)
        plain = self.per_worker(self.deviation) / counts
        freedom = max(int((self.seen - (self.seen > 0)).sum()), 1)
        within = float(((self.deviation - plain[self.worker]) ** 2).sum() / freedom)
        reported = self.seen > 0
        between = float(np.mean(plain[reported] ** 2) - within * np.mean(1 / counts[reported]))
        return max(within, np.finfo(float).tiny), max(between, 0.0)

    def unseen_of_stranger(self) -> float:
        within, between = self.spreads
        return max(within - float(self.variance.mean()), 0.0) + between


def _check(reports: Reports) -> None:
    if not len(reports):
        raise InputError("the history must hold at least one report; got none", fix="give reports of past questions")
    if any(channel.protects_participation for channel in reports.channels):
        raise InputError(
            "selection needs to see who answered, and these reports hide it (participation is protected)",
            fix="give a history whose participation is visible",
        )
    row = check_unique(reports.worker, reports.question, reports.n_questions)
    if row is not None:
        raise InputError(
            "a worker must report once per question; this row repeats one", fix="remove it", row=row + 1, field="worker"
        )


def _numeric(reports: Reports) -> bool:
    return isinstance(reports.domain, Scale) or any(not isinstance(channel, Channel) for channel in reports.channels)


def _entries(reports: Reports) -> tuple[NDArray[Any], NDArray[Any], Floats, Floats, int]:
    """(worker, column, unbiased value, noise variance) of every seen cell, and the number of columns."""
    if _numeric(reports):
        return reports.worker, reports.question, reports.numbers()[0], _noise(reports), reports.n_questions
    n_options = reports.domain.size
    votes, spread = np.zeros((len(reports), n_options)), np.zeros((len(reports), n_options))
    for index, channel in enumerate(reports.channels):
        rows = reports.channel == index
        assert isinstance(channel, Channel)
        votes[rows] = channel.votes[reports.report[rows]]
        # Averaged over the answers, the variance of a vote is E[vote²] − E[1 where it is the answer].
        spread[rows] = np.maximum((channel.table @ channel.votes**2).mean(axis=0) - 1 / n_options, 0.0)
    column = reports.question[:, None].astype(np.int64) * n_options + np.arange(n_options)
    worker = np.repeat(reports.worker, n_options)
    return worker, column.ravel(), votes.ravel(), spread.ravel(), reports.n_questions * n_options


def _noise(reports: Reports) -> Floats:
    """The noise variance of each report, averaged over the levels it may come from."""
    variances = [
        float(channel.scores(reports.domain.numbers)[1].mean()) if isinstance(channel, Channel) else channel.variance
        for channel in reports.channels
    ]
    variance: Floats = np.array(variances)[reports.channel]
    return variance
