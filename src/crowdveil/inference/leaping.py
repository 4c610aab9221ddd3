"""Leaps along the laws of types and classes: what message passing learns slowest is reached in fewer sweeps.

Messages settle in a few sweeps, the laws that they are read by creep: where noise hides whether a class is common or a
crowd leans to it, each sweep closes a fiftieth of what is left, or leaves by as little a point that is nearly at rest.
Two sweeps tell the direction and how the steps shrink, and a leap follows (SQUAREM, Varadhan & Roland 2008, scheme S3).
Unlike methods that solve for the resting point, it leads away from one that the sweeps themselves lead away from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.model import Parameters

Array = NDArray[Any]
Laws = dict[str, Array]
LAWS = ("log_types", "log_classes")
FIRST, MOST = 4.0, 16.0
"""How many steps long the first leap may be, and any."""
_ANY = float(np.finfo(np.float64).max)
"""A length that no step has: a number, because all parameters of an estimate are."""


def leapt(old: Parameters, new: Parameters, least: Laws) -> Laws:
    """The laws to go on with after a step from `old` to `new`, and what the next step must know.

    Every second step ends in a leap. `least` are the logarithms that no law can fall below in a step; no leap does.
    """
    reach, last = old.get("reach", (FIRST, _ANY))
    if "before" not in old:
        return {"before": _point(old), "reach": np.array([reach, last])}
    here, step = _point(old), _point(old) - old["before"]
    bend = _point(new) - here - step
    length, curve = _length(step, here), _length(bend, here)
    grows = bool((np.exp(here) * step) @ bend > 0)
    # Steps that shrank must be shorter after a leap; if they are not, it went too far.
    if length > last:
        reach = max(reach / 2, 1.0)
    elif not grows:
        reach = min(reach * 2, MOST)
    stretch = min(max(length / curve, 1.0), reach) if curve > 0 else 1.0
    goal = old["before"] + 2 * stretch * step + stretch**2 * bend
    return {**_laws(goal, least), "reach": np.array([reach, _ANY if grows else length])}


def _point(parameters: Parameters) -> Array:
    return np.concatenate([parameters[name] for name in LAWS])


def _laws(point: Array, least: Laws) -> Laws:
    cut = len(least[LAWS[0]])
    laws = {name: np.maximum(logs, least[name]) for name, logs in zip(LAWS, (point[:cut], point[cut:]), strict=True)}
    return {name: logs - np.logaddexp.reduce(logs) for name, logs in laws.items()}


def _length(change: Array, logs: Array) -> float:
    """How far a law moves, by Fisher's measure: a share that is next to nothing may change its logarithm freely."""
    return float(np.sqrt(np.exp(logs) @ change**2))
