"""Score an estimate against known truths, beside the trivial baselines that any method has to beat."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import is_missing
from crowdveil.errors import DomainError, InputError
from crowdveil.estimate import Estimate
from crowdveil.inference.methods.majority import Majority
from crowdveil.inference.methods.mean import Mean
from crowdveil.inference.observations.numeric import middle_of
from crowdveil.reports import Reports

Array = NDArray[Any]
Scores = dict[str, float]
_LARGE = 1e100


def score(estimate: Estimate, truth: Mapping[Hashable, object]) -> Scores:
    """Accuracy and F1 (the average over the options) for choices, MAE and RMSE for numbers."""
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
        "mid-level": _distances(np.full(len(numbers), middle_of(estimate.domain)), numbers),
    }


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
