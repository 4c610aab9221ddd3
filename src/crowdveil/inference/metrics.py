"""Score an estimate against known truths, beside the trivial baselines that any method has to beat."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import is_missing
from crowdveil.errors import DomainError, InputError
from crowdveil.estimate import Estimate
from crowdveil.inference.methods.majority import Majority
from crowdveil.inference.methods.mean import Mean
from crowdveil.inference.observations.numeric import domain_middle
from crowdveil.reports import Reports

Array = NDArray[Any]
Scores = dict[str, float]
_LARGE = 1e100
_MAX_BINS = 1000


def score(estimate: Estimate, truth: Mapping[Hashable, object]) -> Scores:
    """Compare an estimate with known truths.

    `truth` maps questions to true values; questions without an estimate or a truth are left out. Returns accuracy and
    macro F1 for choices, MAE and RMSE for scales.

    >>> from crowdveil import Majority
    >>> estimate = Majority().fit({"worker": [1, 2, 3], "question": ["a", "a", "b"], "answer": ["no", "no", "yes"]})
    >>> score(estimate, {"a": "no", "b": "no"})["accuracy"]
    0.5
    """
    places = _places(estimate, truth)
    if estimate.categorical:
        return _matches(estimate.value[places], _codes(estimate, truth, places))
    return _distances(estimate.value[places], _numbers(estimate, truth, places))


def n_scored(estimate: Estimate, truth: Mapping[Hashable, object]) -> int:
    """How many questions have both an estimate and a known truth."""
    return len(_places(estimate, truth))


def baselines(reports: Reports, estimate: Estimate, truth: Mapping[Hashable, object]) -> dict[str, Scores]:
    """Always the best constant, always the middle level, and the plain vote or mean of the same reports."""
    if estimate.categorical:
        return constants(estimate, truth) | {"majority": score(Majority().fit(reports), truth)}
    return constants(estimate, truth) | {"mean": score(Mean().fit(reports), truth)}


def constants(estimate: Estimate, truth: Mapping[Hashable, object]) -> dict[str, Scores]:
    """What saying the same of every question would score."""
    places = _places(estimate, truth)
    if estimate.categorical:
        codes = _codes(estimate, truth, places)
        commonest = np.bincount(codes[codes >= 0], minlength=1).argmax()
        return {"best constant": _matches(np.full(len(codes), commonest), codes)}
    numbers = _numbers(estimate, truth, places)
    return {
        "best constant": _distances(np.full(len(numbers), np.median(numbers)), numbers),
        "mid-level": _distances(np.full(len(numbers), domain_middle(estimate.domain)), numbers),
    }


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """A reliability table: for each bin of confidence, how many values, their mean confidence and their accuracy."""

    count: Array
    confidence: Array
    accuracy: Array

    @property
    def calibration_error(self) -> float:
        """Mean distance of confidence and accuracy, each bin weighted by its count (expected calibration error)."""
        filled = self.count > 0
        distance = np.abs(self.confidence[filled] - self.accuracy[filled])
        return float(self.count[filled] @ distance / self.count.sum())


def brier_score(estimate: Estimate, truth: Mapping[Hashable, object]) -> float:
    """Mean over the questions of Σ (probability − 1 at the truth, 0 elsewhere)² (Brier 1950): 0 is best, 2 worst."""
    posterior, codes = _scored_posterior(estimate, truth)
    return float(((posterior - (codes[:, None] == np.arange(posterior.shape[1]))) ** 2).sum(axis=1).mean())


def log_loss(estimate: Estimate, truth: Mapping[Hashable, object]) -> float:
    """Mean over the questions of −ln P(truth), in nats; infinite where a truth had no probability at all."""
    posterior, codes = _scored_posterior(estimate, truth)
    probability = np.where(codes >= 0, posterior[np.arange(len(codes)), np.maximum(codes, 0)], 0.0)
    with np.errstate(divide="ignore"):
        # Adding 0 turns the −0 of a perfect posterior into 0.
        return float(-np.log(probability).mean() + 0.0)


def reliability_table(estimate: Estimate, truth: Mapping[Hashable, object], *, n_bins: int = 10) -> Reliability:
    """Confidence in the values beside their accuracy, in bins of equal width (DeGroot & Fienberg 1983)."""
    if not 1 <= n_bins <= _MAX_BINS:
        raise InputError(f"n_bins must be a whole number from 1 to {_MAX_BINS}; got {n_bins!r}")
    posterior, codes = _scored_posterior(estimate, truth)
    confidence = posterior.max(axis=1)
    right = (posterior.argmax(axis=1) == codes).astype(np.float64)
    place = np.minimum((confidence * n_bins).astype(np.int64), n_bins - 1)
    count = np.bincount(place, minlength=n_bins)
    means = [
        np.bincount(place, column, minlength=n_bins) / np.where(count > 0, count, np.nan)
        for column in (confidence, right)
    ]
    return Reliability(count, means[0], means[1])


def entropy(estimate: Estimate) -> Array:
    """Entropy of the posterior of each question in nats: 0 where it is certain; NaN where nobody answered."""
    if estimate.posterior is None:
        raise InputError(f"method {estimate.method} has no posterior", fix="use a method for choices")
    posterior = np.asarray(estimate.posterior, dtype=np.float64)
    terms = np.where(posterior > 0, -posterior * np.log(np.where(posterior > 0, posterior, 1.0)), 0.0)
    return np.where(estimate.answered, terms.sum(axis=1), np.nan)


def _scored_posterior(estimate: Estimate, truth: Mapping[Hashable, object]) -> tuple[Array, NDArray[np.int64]]:
    """Posterior and truth of the questions that have both; the posterior in double precision."""
    if estimate.posterior is None:
        raise InputError(f"method {estimate.method} has no posterior to score", fix="use a method for choices")
    places = _places(estimate, truth)
    return np.asarray(estimate.posterior, dtype=np.float64)[places], _codes(estimate, truth, places)


def _places(estimate: Estimate, truth: Mapping[Hashable, object]) -> Array:
    """The questions that have both an estimate and a truth."""
    known = [
        index
        for index, question in enumerate(estimate.questions.tolist())
        if question in truth and not is_missing(truth[question])
    ]
    places = np.array(known, dtype=np.int64)
    places = places[estimate.answered[places]]
    if not len(places):
        raise InputError("no question has both an estimate and a truth", fix="check that the ids of both files agree")
    return places


def _codes(estimate: Estimate, truth: Mapping[Hashable, object], places: Array) -> NDArray[np.int64]:
    """Truths as option codes; a truth that is no option has -2, which no estimate can match."""
    codes = []
    for question in estimate.questions[places].tolist():
        try:
            codes.append(estimate.domain.code(truth[question]))
        except DomainError:
            codes.append(-2)
    return np.array(codes, dtype=np.int64)


def _numbers(estimate: Estimate, truth: Mapping[Hashable, object], places: Array) -> NDArray[np.float64]:
    numbers = []
    for question in estimate.questions[places].tolist():
        try:
            number = float(str(truth[question]))
        except ValueError:
            number = np.nan
        if not abs(number) < _LARGE:
            raise InputError(f"the truth of {question!r} must be a number below 1e100; got {truth[question]!r}")
        numbers.append(number)
    return np.array(numbers)


def _matches(value: Array, truth: Array) -> Scores:
    parts = []
    for code in np.unique(truth):
        hits = float(((value == code) & (truth == code)).sum())
        parts.append(2 * hits / float((value == code).sum() + (truth == code).sum()))
    return {"accuracy": float((value == truth).mean()), "f1": float(np.mean(parts))}


def _distances(value: Array, truth: Array) -> Scores:
    distance = np.abs(value - truth)
    return {"mae": float(distance.mean()), "rmse": float(np.sqrt((distance**2).mean()))}
