"""Population estimates planned in closed form: the mean of a scale, or the share of each option (Kandappu 2015).

Nobody is right or wrong here: the opinions themselves are wanted, so skill plays no part and the error has two parts,
who happened to be asked and what the channel added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.domain import Domain, Scale
from crowdveil.plan.density_evolution import Prediction
from crowdveil.plan.design import CrowdPart, Setting

Floats = NDArray[np.float64]


def predict_population(setting: Setting, channel: Channel) -> Prediction:
    """The root mean square error of a mean, or of an option's share, when opinions are spread evenly."""
    return predict_population_parts(setting, [CrowdPart(channel, setting.n_workers)])


def predict_population_parts(setting: Setting, parts: Sequence[CrowdPart]) -> Prediction:
    """The same for workers at several levels of privacy, put together as our methods do.

    `population-mean` weighs levels by their precision (they are taken to think alike), so 1 / error² adds up;
    `frequency` counts every worker once, so the variances of all the votes add up instead.
    """
    share = setting.share
    present = [(_variance(setting, part.channel), part.n_workers) for part in parts if part.n_workers > 0]
    if isinstance(setting.domain, Scale):
        variance = 1 / sum(n_workers * share**2 / worker_variance for worker_variance, n_workers in present)
    else:
        n_answers = max(share * sum(n_workers for _, n_workers in present), share)
        variance = sum(n_workers * worker_variance for worker_variance, n_workers in present) / n_answers**2
    # A mean of n squared errors has a relative spread of √(2/n), its root half of that.
    error, n_targets = math.sqrt(variance), 1 if isinstance(setting.domain, Scale) else setting.domain.size
    return Prediction(error, error * math.sqrt(0.5 / n_targets), 0.0)


def _variance(setting: Setting, channel: Channel) -> float:
    """What one worker adds to the variance of a sum of answers, on average over what is wanted.

    With participation protected the estimate is a ratio X̄/Ȳ, Y being the unbiased count of answers, and its variance
    is that of X − f·Y over N·s² (first order).
    """
    wanted, targets = _target_values(setting.domain)
    inputs = np.full(setting.domain.size, setting.share / setting.domain.size)
    scores = np.stack([channel.scores(column)[0] for column in wanted])
    answered = np.ones(scores.shape[1])
    if channel.protects_participation:
        inputs = np.append(inputs, 1 - setting.share)
        answered = channel.scores(np.ones(setting.domain.size))[0]
    residual = scores - targets[:, None] * answered
    return float(((residual**2 @ channel.table.T) @ inputs).mean())


def sampling_error(setting: Setting) -> float:
    """The error of the same people asked without privacy: what no mechanism can pass."""
    wanted, targets = _target_values(setting.domain)
    variance = float(np.mean((wanted**2).mean(axis=1) - targets**2))
    return math.sqrt(variance / max(setting.n_workers * setting.share, 1.0))


def prior_spread(domain: Domain) -> float:
    """The error of a guess: the middle of the scale, or equal shares when all shares are equally likely."""
    if isinstance(domain, Scale):
        return domain.range / math.sqrt(12)
    k = domain.size
    return math.sqrt((k - 1) / (k**2 * (k + 1)))


def _target_values(domain: Domain) -> tuple[Floats, Floats]:
    """The numbers whose averages are wanted, one row each, and these averages for evenly spread opinions."""
    rows = domain.numbers[None, :] if isinstance(domain, Scale) else np.eye(domain.size)
    return rows, rows.mean(axis=1)
