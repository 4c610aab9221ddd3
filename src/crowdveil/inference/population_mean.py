"""Population mean: the average opinion when workers chose different levels of privacy (Kandappu et al. 2015, repaired).

Weighting each level by 1/(τ² + γ²) cuts the error by more than half, but only if people who choose more privacy think
like the others. So that is tested first; where they do not, every level counts by its number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from crowdveil.errors import InputError
from crowdveil.estimate import Estimate
from crowdveil.inference.base import Method
from crowdveil.inference.fitting import from_columns, provenance
from crowdveil.inference.numbers import Numbers, bounds_of, numbers_of, sums, with_interval
from crowdveil.noise import NoiseRecord
from crowdveil.reports import Reports

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationMean(Method):
    """Inverse-variance weighting across levels of privacy where their opinions agree; a level is a channel.

    `significance` is the chance of rejecting agreement that holds.

    >>> from crowdveil import Answers, Reports, Scale
    >>> rows = [("ada", "q1", 1), ("bob", "q1", 2), ("cy", "q1", 5)]
    >>> estimate = PopulationMean().fit(Reports.unprotected(Answers.from_rows(rows, Scale(1, 5))))
    >>> round(float(estimate.value[0]), 3), estimate.provenance["weighting"]
    (2.667, 'plain')
    """

    name: ClassVar[str] = "population-mean"
    summary: ClassVar[str] = "the average opinion, levels of privacy weighted by their noise where opinions agree"
    numeric: ClassVar[bool] = True

    significance: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.significance < 1:
            raise InputError(f"significance must be between 0 and 1; got {self.significance:g}")

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        strata = _strata(reports)
        p_value, n_levels = homogeneity(strata)
        if n_levels < 2:
            weighting, why = "plain", "all reports have the same level of privacy"
        elif np.isnan(p_value):
            weighting, why = "stratified", "too few reports to test whether levels of privacy think alike"
        elif p_value < self.significance:
            weighting, why = "stratified", f"levels of privacy do not think alike (p = {p_value:.2g})"
        else:
            weighting, why = (
                "inverse-variance",
                f"levels of privacy think alike as far as can be seen (p = {p_value:.2g})",
            )
        columns = _combined(strata, by_noise=weighting == "inverse-variance", reports=reports)
        estimate = from_columns(self, reports, columns, (f"{weighting} mean: {why}",) if n_levels > 1 else ())
        told = {"weighting": weighting, "why": why, "p_value": None if np.isnan(p_value) else float(p_value)}
        return replace(estimate, provenance=provenance(self, reports) | told)


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """Level × question: reports, how many of them are answers, the mean opinion, and its variance."""

    count: Array
    mass: Array
    mean: Array
    variance: Array


def _strata(reports: Reports) -> Strata:
    rows = numbers_of(reports, reports.channels, reports.domain, as_answers=False)
    n_levels, n_questions = max(len(reports.channels), 1), reports.n_questions
    place = reports.channel.astype(np.int64) * n_questions + rows.question
    shape = (n_levels, n_questions)
    count = sums(place, None, n_levels * n_questions).reshape(shape)
    mass = sums(place, rows.share, n_levels * n_questions).reshape(shape)
    total = sums(place, rows.value, n_levels * n_questions).reshape(shape)
    low, high = bounds_of(reports.domain)
    middle = np.full(shape, (low + high) / 2)
    mean = np.divide(total, mass, out=middle, where=mass > 1e-9)
    noise = _row_variances(reports, rows, mean, count)
    variance = np.full(shape, np.inf)
    np.divide(count * noise[:, None], mass**2, out=variance, where=(count > 0) & (mass > 1e-9))
    return Strata(count, mass, mean, variance)


def _row_variances(reports: Reports, rows: Numbers, mean: Array, count: Array) -> Array:
    """The variance of one report around its question's mean, level by level: τ² + γ².

    γ² is the channel's own; τ², the spread of opinions, is what the levels' variances have in common beyond it. Where
    participation is hidden the two do not separate, and the level's own variance is taken.
    """
    level = reports.channel
    square = (rows.value - rows.share * mean[level, rows.question]) ** 2
    freedom = np.maximum(count - 1, 0).sum(axis=1)
    low, high = bounds_of(reports.domain)
    own = sums(level, square, len(count)) / np.maximum(freedom, 1.0)
    gamma = np.array([_noise(channel, reports) for channel in reports.channels] or [0.0])
    hidden = np.array([channel.protects_participation for channel in reports.channels] or [False])
    told = ~hidden & (freedom > 0)
    trust = freedom[told] / np.maximum(own[told], 1e-12) ** 2
    most = (high - low) ** 2 / 4
    tau = float(np.clip(trust @ (own[told] - gamma[told]) / trust.sum(), 0, most)) if told.any() else most / 3
    variance = np.where(hidden & (freedom > 0), own, tau + gamma)
    return np.maximum(variance, 1e-12)


def _noise(channel: Any, reports: Reports) -> float:
    if isinstance(channel, NoiseRecord):
        return channel.variance
    return float(channel.scores(reports.domain.numbers)[1][: channel.n_levels].mean())


def homogeneity(strata: Strata) -> tuple[float, int]:
    """The p-value that all levels of privacy have the same opinions, and how many levels there are.

    Two chi-squares share the significance: whether a level is shifted as a whole, and whether single questions differ.
    """
    used = (strata.count >= 2) & np.isfinite(strata.variance)
    n_levels = int((strata.count.sum(axis=1) > 0).sum())
    precision = np.where(used, 1 / np.where(used, strata.variance, 1.0), 0.0)
    total = precision.sum(axis=0)
    centre = np.divide((precision * strata.mean).sum(axis=0), total, out=np.zeros_like(total), where=total > 0)
    deviation = np.where(used, strata.mean - centre, 0.0)
    freedom = int(np.maximum(used.sum(axis=0) - 1, 0).sum())
    if freedom < 1:
        return float("nan"), n_levels
    single = float(chdtrc(freedom, (precision * deviation**2).sum()))
    # A level's summed deviation has the covariance of residuals around the weighted mean of each question.
    score = (precision * deviation).sum(axis=1)
    spread = np.diag(precision.sum(axis=1)) - (precision / np.where(total > 0, total, 1.0)) @ precision.T
    rank = int(np.linalg.matrix_rank(spread, hermitian=True))
    shifted = float(chdtrc(max(rank, 1), score @ np.linalg.pinv(spread, hermitian=True) @ score))
    return min(1.0, 2 * min(single, shifted)), n_levels


def _combined(strata: Strata, *, by_noise: bool, reports: Reports) -> dict[str, Array]:
    """Value and interval of each question."""
    used = np.isfinite(strata.variance)
    weight = np.where(used, 1 / np.where(used, strata.variance, 1.0) if by_noise else strata.count, 0.0)
    total = weight.sum(axis=0)
    share = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    low, high = bounds_of(reports.domain)
    value = np.clip(np.where(total > 0, (share * strata.mean).sum(axis=0), (low + high) / 2), low, high)
    variance = (share**2 * np.where(used, strata.variance, 0.0)).sum(axis=0)
    count = strata.count.sum(axis=0)
    # Variances are pooled over all questions, so their freedom is that of the whole table.
    freedom = np.full(len(value), max(float(np.maximum(strata.count - 1, 0).sum()), 0.0))
    return with_interval(value, variance, freedom, count > 0, reports.domain)
