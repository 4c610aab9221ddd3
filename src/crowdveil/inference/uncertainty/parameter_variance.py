"""How well the chances of reports are known: workers are estimates, and so is how much they differ.

A chance that rests on n answers has the variance p · (1 − p) / (n + 1). Reports are no answers: each is worth as much
less as the channel's noise is larger, and less again where the truth it is held against is itself a guess. Nor is a
prior as strong as it was fitted: where noise hides whether workers differ they are all taken as the typical one, which
is the best guess and a poor bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.kernels.layout import Layout
from crowdveil.inference.observations.likelihood import Emission
from crowdveil.inference.priors.crowd import MOST_ALIKE
from crowdveil.inference.protocols import Parameters, Statistics

Array = NDArray[Any]
_LEAST_KNOWN = 1e-3


def as_known(posterior: Array) -> Array:
    """How much of a known truth each question's posterior is.

    Where the truth has the probability p, an answer tells ((k·p − 1) / (k − 1))² as much about its worker.
    """
    n_options = posterior.shape[1]
    known: Array = np.square((n_options * posterior.max(axis=1, initial=0.0) - 1) / max(n_options - 1, 1))
    return known


def known_share(posterior: Array) -> Statistics:
    """The sum of `as_known` over questions, and how many these are."""
    return {"known": np.array([float(as_known(posterior).sum()), float(len(posterior))])}


def with_known(statistics: Statistics, parameters: Parameters) -> Parameters:
    """The parameters with how much of a known truth the average posterior is."""
    total, n_questions = statistics["known"]
    return {**parameters, "known": np.array([total / n_questions if n_questions else 1.0])}


def reports_per_answer(noise: float, parameters: Parameters) -> float:
    """How many reports tell as much about a worker as one unprotected answer to a question whose truth is known."""
    known = float(parameters["known"][0]) if "known" in parameters else 1.0
    return noise / max(known, _LEAST_KNOWN)


def weakest(strength: float, reports: Array, per_answer: float) -> float:
    """The strength of a prior if workers differ by one standard error more than was seen.

    `reports` has those that share something, row by row. Each pair of them tells the correlation with a variance of
    about `per_answer` squared.
    """
    pairs = float((reports * np.maximum(reports - 1, 0.0)).sum()) / 2
    alike = 1 / (1 + strength) + per_answer / np.sqrt(max(pairs, 1.0))
    return float(1 / min(alike, MOST_ALIKE) - 1)


def coin_variance(skill: Array, strength: float, reports: Array, per_answer: float) -> Array:
    """The variance of each worker's skill, from the crowd's law of this strength and from the worker's own reports."""
    answers = weakest(strength, reports, per_answer) + reports / per_answer
    variance: Array = skill * (1 - skill) / (answers + 1)
    return variance


def coin_doubts(emission: Emission, confusion: Array, errors: Array, variance: Array, layout: Layout) -> Array:
    """The variance of the log-odds of truths, by the worker whose skill has this variance: cell × truth.

    `errors` says where wrong answers go, `variance` is worker × truth. One skill moves the chances at all truths
    together, so that a report takes part only in what it says more of one truth than of the one it speaks least for.
    """
    options = np.arange(emission.n_options)
    direction = np.zeros((emission.n_answers, emission.n_options))
    direction[options] = -errors
    direction[options, options] = 1.0
    worker, symbol = emission.cells(layout)
    response_rate = confusion[:, : emission.n_options, 0].sum(axis=1)
    slope = (emission.table.T @ direction)[symbol] * response_rate[worker, None]
    slope /= np.maximum(emission.chances(confusion, layout), 1e-12)
    slope -= slope.min(axis=1, keepdims=True)
    doubts: Array = slope**2 * variance[worker]
    return doubts


def row_doubts(emission: Emission, confusion: Array, answers: Array, layout: Layout) -> Array:
    """The variance of the logarithms of chances that rest on so many answers, worker × truth, each: cell × truth."""
    worker, _ = emission.cells(layout)
    doubts: Array = np.maximum(emission.lift(confusion, layout) - 1, 0.0) / (answers[worker] + 1)
    return doubts
