"""SQUAREM: extrapolate along the line that two steps of EM or message passing point out (Varadhan & Roland 2008, S3).

`extrapolate` serves EM. `squarem_step` serves message passing: messages converge in a few sweeps, but the mixture
weights of worker types and classes move slowly where noise hides whether a class is common or the workers are biased
towards it. Every second sweep therefore ends in an extrapolation of those weights. Unlike methods that solve for the
fixed point, it moves away from an unstable one, as the sweeps themselves do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.protocols import Parameters


def extrapolate(first: Parameters, second: Parameters, third: Parameters) -> Parameters:
    """First − 2αr + α²v with r = second − first, v = (third − second) − r and α = −‖r‖ / ‖v‖, at most −1."""
    r = {name: second[name] - first[name] for name in first}
    v = {name: third[name] - second[name] - r[name] for name in first}
    # Lengths count each array in units of itself: counts must not drown probabilities.
    unit = {name: 1e-12 + float(np.square(first[name]).mean()) for name in first}
    length = math.sqrt(sum(float(np.square(change).mean()) / unit[name] for name, change in r.items()))
    curvature = math.sqrt(sum(float(np.square(change).mean()) / unit[name] for name, change in v.items()))
    if curvature == 0.0:
        return third
    alpha = min(-length / curvature, -1.0)
    return {name: first[name] - 2 * alpha * r[name] + alpha**2 * v[name] for name in first}


Array = NDArray[Any]
MixtureWeights = dict[str, Array]
LOG_WEIGHTS = ("log_types", "log_classes")
INITIAL_MAX_STEP, LARGEST_MAX_STEP = 4.0, 16.0
"""How many steps long the first extrapolation may be, and any."""
_UNBOUNDED_LENGTH = float(np.finfo(np.float64).max)
"""A length that no step has: a number, because all parameters of an estimate are."""


def squarem_step(old: Parameters, new: Parameters, minimum: MixtureWeights) -> MixtureWeights:
    """The weights to go on with after a step from `old` to `new`, and what the next step must know.

    Every second step ends in an extrapolation. `minimum` are the logarithms that no weight can fall below in a step;
    no extrapolation does.
    """
    max_step, last = old.get("reach", (INITIAL_MAX_STEP, _UNBOUNDED_LENGTH))
    if "before" not in old:
        return {"before": _point(old), "reach": np.array([max_step, last])}
    here, step = _point(old), _point(old) - old["before"]
    curvature = _point(new) - here - step
    length, curvature_length = _fisher_length(step, here), _fisher_length(curvature, here)
    grows = bool((np.exp(here) * step) @ curvature > 0)
    # Steps that shrank must be shorter after an extrapolation; if they are not, it went too far.
    if length > last:
        max_step = max(max_step / 2, 1.0)
    elif not grows:
        max_step = min(max_step * 2, LARGEST_MAX_STEP)
    step_length = min(max(length / curvature_length, 1.0), max_step) if curvature_length > 0 else 1.0
    goal = old["before"] + 2 * step_length * step + step_length**2 * curvature
    return {**_weights(goal, minimum), "reach": np.array([max_step, _UNBOUNDED_LENGTH if grows else length])}


def _point(parameters: Parameters) -> Array:
    return np.concatenate([parameters[name] for name in LOG_WEIGHTS])


def _weights(point: Array, minimum: MixtureWeights) -> MixtureWeights:
    cut = len(minimum[LOG_WEIGHTS[0]])
    parts = zip(LOG_WEIGHTS, (point[:cut], point[cut:]), strict=True)
    weights = {name: np.maximum(logs, minimum[name]) for name, logs in parts}
    return {name: logs - np.logaddexp.reduce(logs) for name, logs in weights.items()}


def _fisher_length(change: Array, logs: Array) -> float:
    """How far weights move, by Fisher's measure: a weight near zero may change its logarithm freely."""
    return float(np.sqrt(np.exp(logs) @ change**2))
