"""Agreement between workers: Cohen's κ, Fleiss' κ and Krippendorff's α, from answers or debiased from private reports.

Each coefficient is 1 − observed / expected disagreement, and both are means over pairs of answers. Reports of two
workers are independent given their answers, so the product of two reports' unbiased votes is an unbiased vote for the
pair. Only pairs of different reports are multiplied: a report's votes times themselves would be biased. Without
privacy the votes are the answers, and the coefficients are the classical ones.

Intervals take the questions as a sample and the workers as fixed: jackknife over the questions, then Fieller's theorem
for the ratio of the two disagreements (Fieller 1954), which stays valid where noise makes the denominator uncertain.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from crowdveil.domain import Domain
from crowdveil.errors import InputError
from crowdveil.inference.joint_distribution import independent_channels
from crowdveil.inference.uncertainty.summaries import LEVEL
from crowdveil.reports import Reports

Array = NDArray[Any]
Metric = Literal["nominal", "ordinal", "interval"]
Disagreement = Callable[[Array], tuple[Array, Array]]
MAX_JACKKNIFE_GROUPS = 1_000
"""More questions are left out in groups of equal size (delete-a-group jackknife; Kott 2001)."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """A coefficient (1: perfect, 0: as by chance) with its interval; NaN where all answers seem to be equal."""

    coefficient: str
    estimate: float
    low: float
    high: float
    n_questions: int
    level: float = LEVEL


def cohen_kappa(reports: Reports, first: Hashable, second: Hashable) -> Agreement:
    """Cohen's κ (1960) of two workers, over the questions that both have a report about.

    >>> from crowdveil import Answers, Choices
    >>> answers = zip("aabbb", "ababb")
    >>> rows = [(worker, n, answer) for n, pair in enumerate(answers) for worker, answer in zip(("ada", "bob"), pair)]
    >>> kappa = cohen_kappa(Reports.unprotected(Answers.from_rows(rows, Choices(("a", "b")))), "ada", "bob")
    >>> round(kappa.estimate, 4)
    0.1667
    """
    votes = _votes(reports)
    names = reports.workers.astype(str)
    chosen = [np.flatnonzero(np.isin(reports.worker, np.flatnonzero(names == str(name)))) for name in (first, second)]
    _, left, right = np.intersect1d(
        reports.question[chosen[0]], reports.question[chosen[1]], assume_unique=True, return_indices=True
    )
    if str(first) == str(second) or len(left) < 2:
        raise InputError(
            f"{first!r} and {second!r} must be two workers with reports about at least two common questions",
            fix="check the workers' ids",
        )
    x, y = votes[chosen[0][left]], votes[chosen[1][right]]
    answered_x, answered_y = x.sum(axis=1, keepdims=True), y.sum(axis=1, keepdims=True)
    k = x.shape[1]
    agreed = (x * y).sum(axis=1, keepdims=True)
    columns = np.concatenate([x * answered_y, y * answered_x, answered_x * answered_y, agreed], axis=1)

    def disagreement(sums: Array) -> tuple[Array, Array]:
        pairs = sums[:, 2 * k]
        by_chance = (sums[:, :k] * sums[:, k : 2 * k]).sum(axis=1) / pairs**2
        return 1 - sums[:, 2 * k + 1] / pairs, 1 - by_chance

    return _coefficient("Cohen's κ", columns, disagreement)


def fleiss_kappa(reports: Reports) -> Agreement:
    """Fleiss' κ (1971) over the questions with two or more reports.

    Questions with different numbers of reports count equally.
    """
    units = _units(reports, _distances("nominal", reports.domain, None))
    scale = 1 / (units.size * (units.size - 1))
    return _coefficient("Fleiss' κ", units.columns(scale), units.disagreement(self_pairs=True))


def krippendorff_alpha(reports: Reports, *, metric: Metric = "nominal") -> Agreement:
    """Krippendorff's α over the questions with two or more reports.

    `ordinal` takes the options, or levels, in the order of the domain; `interval` takes their numbers.
    """
    if metric not in ("nominal", "ordinal", "interval"):
        raise InputError(f"metric must be nominal, ordinal or interval; got {metric!r}")
    votes = _votes(reports)
    paired = np.bincount(reports.question, minlength=reports.n_questions)[reports.question] > 1
    units = _units(reports, _distances(metric, reports.domain, votes[paired].sum(axis=0)))
    return _coefficient(
        f"Krippendorff's α, {metric}", units.columns(1 / (units.size - 1)), units.disagreement(self_pairs=False)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Units:
    """Sums over the reports of each question: votes, and what each report's votes times themselves amount to."""

    distances: Array
    size: Array
    votes: Array
    own_distance: Array
    own_mass: Array

    def columns(self, scale: Array) -> Array:
        """By question: votes, scaled disagreement and number of its pairs of answers, and the two own sums."""
        distance = ((self.votes @ self.distances) * self.votes).sum(axis=1) - self.own_distance
        pairs = self.votes.sum(axis=1) ** 2 - self.own_mass
        return np.column_stack([self.votes, scale * distance, scale * pairs, self.own_distance, self.own_mass])

    def disagreement(self, *, self_pairs: bool) -> Disagreement:
        """Observed within questions and expected between all answers; Fleiss counts an answer's pair with itself."""
        k = self.votes.shape[1]

        def disagreement(sums: Array) -> tuple[Array, Array]:
            votes = sums[:, :k]
            distance = ((votes @ self.distances) * votes).sum(axis=1) - sums[:, k + 2]
            pairs = votes.sum(axis=1) ** 2 - (0 if self_pairs else sums[:, k + 3])
            return sums[:, k] / sums[:, k + 1], distance / pairs

        return disagreement


def _units(reports: Reports, distances: Array) -> _Units:
    votes = _votes(reports)
    size = np.bincount(reports.question, minlength=reports.n_questions)
    chosen = size >= 2
    if chosen.sum() < 2:
        raise InputError("agreement needs at least two questions with two or more reports each", fix="ask more workers")

    def by_question(column: Array) -> Array:
        total: Array = np.bincount(reports.question, column, minlength=reports.n_questions)[chosen]
        return total

    summed = np.stack([by_question(column) for column in votes.T], axis=1)
    own_distance = by_question(((votes @ distances) * votes).sum(axis=1))
    return _Units(distances, size[chosen], summed, own_distance, by_question(votes.sum(axis=1) ** 2))


def _votes(reports: Reports) -> Array:
    """Unbiased votes of each report for the options; a worker has at most one report about a question."""
    key = reports.worker.astype(np.int64) * reports.n_questions + reports.question
    if len(np.unique(key)) < len(key):
        raise InputError("a worker must have one report about a question; some have several", fix="keep one of them")
    votes = np.zeros((len(reports), reports.domain.size))
    for index, channel in enumerate(independent_channels(reports)):
        rows = reports.channel == index
        votes[rows] = channel.votes[reports.report[rows], : reports.domain.size]
    return votes


def _distances(metric: Metric, domain: Domain, votes: Array | None) -> Array:
    """δ² of each pair of options (Krippendorff 2004)."""
    if metric == "interval":
        return np.subtract.outer(domain.numbers, domain.numbers) ** 2
    if metric == "nominal" or votes is None:
        return 1.0 - np.eye(domain.size)
    # Ordinal: how many answers lie between two options, each of the two counting half.
    middle = np.cumsum(np.maximum(votes, 0.0)) - np.maximum(votes, 0.0) / 2
    return np.subtract.outer(middle, middle) ** 2


def _coefficient(name: str, columns: Array, disagreement: Disagreement) -> Agreement:
    """1 − observed / expected from sums over questions, with the interval of the ratio."""
    n_questions, total = len(columns), columns.sum(axis=0)
    n_groups = min(n_questions, MAX_JACKKNIFE_GROUPS)
    group = np.arange(n_questions) % n_groups
    left_out = np.zeros((n_groups, columns.shape[1]))
    np.add.at(left_out, group, columns)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed, expected = (float(part[0]) for part in disagreement(total[None]))
        without = np.stack(disagreement(total - left_out))
    if not expected > 0 or not np.isfinite(without).all():
        return Agreement(name, float("nan"), -1.0, 1.0, n_questions)
    around = without - without.mean(axis=1, keepdims=True)
    covariance = (n_groups - 1) / n_groups * around @ around.T
    low, high = _fieller(observed, expected, covariance, float(stdtrit(n_groups - 1, 0.5 + LEVEL / 2)))
    estimate, low, high = (float(np.clip(1 - ratio, -1.0, 1.0)) for ratio in (observed / expected, high, low))
    return Agreement(name, estimate, low, high, n_questions)


def _fieller(numerator: float, denominator: float, covariance: Array, quantile: float) -> tuple[float, float]:
    """All ratios ρ with (numerator − ρ · denominator)² ≤ quantile² · variance; everything where they are unbounded."""
    square = quantile**2
    a = denominator**2 - square * covariance[1, 1]
    b = numerator * denominator - square * covariance[0, 1]
    c = numerator**2 - square * covariance[0, 0]
    root = b**2 - a * c
    if a <= 0 or root < 0:
        return -np.inf, np.inf
    return float((b - np.sqrt(root)) / a), float((b + np.sqrt(root)) / a)
