"""SQUAREM: leap along the line that two EM steps point out (Varadhan & Roland 2008, scheme S3)."""

from __future__ import annotations

import math

import numpy as np

from crowdveil.inference.model import Parameters


def extrapolate(first: Parameters, second: Parameters, third: Parameters) -> Parameters:
    """The leap: first − 2αr + α²v with r = second − first, v = (third − second) − r and α = −‖r‖ / ‖v‖, at most −1."""
    r = {name: second[name] - first[name] for name in first}
    v = {name: third[name] - second[name] - r[name] for name in first}
    # Lengths count each array in units of itself: counts must not drown probabilities.
    unit = {name: 1e-12 + float(np.square(first[name]).mean()) for name in first}
    length = math.sqrt(sum(float(np.square(change).mean()) / unit[name] for name, change in r.items()))
    bend = math.sqrt(sum(float(np.square(change).mean()) / unit[name] for name, change in v.items()))
    if bend == 0.0:
        return third
    alpha = min(-length / bend, -1.0)
    return {name: first[name] - 2 * alpha * r[name] + alpha**2 * v[name] for name in first}
