"""The floor beside an estimate of a method that has no prior to return: it says when the reports hold no more."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.bounds.floor import choice_floor, scale_floor
from crowdveil.channel import Channel
from crowdveil.domain import Scale
from crowdveil.estimate import Estimate, Floor
from crowdveil.inference.counting import counted
from crowdveil.inference.finishing import on_simplex
from crowdveil.inference.numbers import numbers_of, pooled, shrunk, sums
from crowdveil.inference.votes import effective_counts, table_channels
from crowdveil.noise import NoiseRecord
from crowdveil.reports import Reports

_MAX_LEVELS = 256
_TOO_LITTLE = "the reports cannot say more than knowing the classes' shares or the crowd's spread would"


def told_choices(estimate: Estimate, reports: Reports, votes: NDArray[Any]) -> Estimate:
    """The estimate with the least error rate any method could have; a warning where that is no gain."""
    if not len(reports):
        return estimate
    channels = table_channels(reports.channels)
    shares = on_simplex(votes.sum(axis=0, keepdims=True, dtype=np.float64))[0]
    # Noise alone makes debiased votes unanimous, and nobody could err about those: shares are no surer than the answers
    # that the reports are worth.
    worth = effective_counts(reports, channels, reports.n_questions).sum()
    classes = (worth * shares + 1) / (worth + len(shares))
    return _told(estimate, choice_floor(channels, reports.channel, reports.n_questions, classes))


def told_numbers(estimate: Estimate, reports: Reports, *, as_answers: bool) -> Estimate:
    """The estimate with the least standard deviation any method could have from workers who err as these do."""
    known = estimate.value[estimate.answered]
    if len(known) < 2:
        return estimate
    channels = [channel for channel in reports.channels if isinstance(channel, Channel)]
    counts = counted(reports.channel, len(reports.channels)) / len(known)
    noise = np.array([_own_noise(channel, reports) for channel in reports.channels])
    # What the reports spread more than their channels explain is the workers' own.
    own = np.maximum(_variances(estimate, reports, as_answers) - np.average(noise, weights=counts), _rounding(reports))
    spread = float(known.std())
    if len(channels) == len(counts) and isinstance(reports.domain, Scale) and reports.domain.size <= _MAX_LEVELS:
        crowd: dict[str, Any] = {"sigmas": np.sqrt(own), "weights": np.full(len(own), 1 / len(own))}
        # Even if everybody had answered, where that is hidden.
        truths: dict[str, Any] = {"share": 1.0, "centre": float(known.mean()), "spread": spread}
        return _told(estimate, scale_floor(channels, counts, reports.domain, **crowd, **truths))
    information = sum(float(count * np.mean(1 / (own + each))) for count, each in zip(counts, noise, strict=True))
    smallest = 1 / math.sqrt(max(information, 1e-300))
    said = f"the least standard deviation any method could have is {smallest:.3g}, without these reports {spread:.3g}"
    return _told(estimate, Floor(smallest, spread, smallest < spread, said))


def _variances(estimate: Estimate, reports: Reports, as_answers: bool) -> NDArray[np.float64]:
    """The variances of the workers' reports around the values: nine that stand for all of them."""
    rows = numbers_of(reports, reports.channels, reports.domain, as_answers=as_answers)
    residual = rows.value - rows.share * estimate.value[rows.question]
    squares, count = sums(rows.worker, residual**2, reports.n_workers), sums(rows.worker, None, reports.n_workers)
    variance = shrunk(squares, count, pooled(squares, count, reports.domain))
    found: NDArray[np.float64] = np.quantile(variance[count > 0], np.linspace(0.05, 0.95, 9))
    return found


def _told(estimate: Estimate, floor: Floor) -> Estimate:
    if floor.informative:
        return replace(estimate, floor=floor)
    sentence = f"{floor.sentence.split(':')[0]}: {_TOO_LITTLE}"
    return replace(estimate, floor=replace(floor, sentence=sentence), warnings=(*estimate.warnings, sentence))


def _own_noise(channel: Channel | NoiseRecord, reports: Reports) -> float:
    if isinstance(channel, NoiseRecord):
        return channel.variance
    return 0.0 if channel.is_identity else float(channel.scores(reports.domain.numbers)[1][: channel.n_levels].mean())


def _rounding(reports: Reports) -> float:
    """The variance that rounding to levels alone brings."""
    step = float(reports.domain.step) if isinstance(reports.domain, Scale) else 0.0
    return step**2 / 12 or 1e-12
