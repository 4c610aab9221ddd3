"""Population estimates planned in closed form: the mean of a scale, or the share of each option (Kandappu 2015).

Nobody is right or wrong here: the opinions themselves are wanted, so skill plays no part and the error has two parts,
who happened to be asked and what the channel added.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.domain import Domain, Scale
from crowdveil.plan.evolution import Prediction
from crowdveil.plan.setting import Setting

Floats = NDArray[np.float64]


def predict_population(setting: Setting, channel: Channel) -> Prediction:
    """The root mean square error of a mean, or of an option's share, when opinions are spread evenly.

    With participation protected the estimate is a ratio X̄/Ȳ, Y being the unbiased count of answers, and its variance
    is that of X − f·Y over N·s² (first order).
    """
    wanted, targets = _wanted(setting.domain)
    share = setting.share if setting.protect_participation else 1.0
    inputs = np.full(setting.domain.size, share / setting.domain.size)
    if setting.protect_participation:
        inputs = np.append(inputs, 1 - share)
    scores = np.stack([channel.scores(column)[0] for column in wanted])
    answered = (
        channel.scores(np.ones(setting.domain.size))[0] if setting.protect_participation else np.ones(scores.shape[1])
    )
    residual = scores - targets[:, None] * answered
    variance = (residual**2 @ channel.table.T) @ inputs
    per_report = float(variance.mean()) / share**2
    n_reports = setting.reports_per_question
    error = math.sqrt(per_report / max(n_reports, 1.0))
    # A mean of n squared errors has a relative spread of √(2/n), its root half of that.
    return Prediction(error, error * math.sqrt(0.5 / len(targets)), 0.0)


def sampling_error(setting: Setting) -> float:
    """The error of the same people asked without privacy: what no mechanism can pass."""
    wanted, targets = _wanted(setting.domain)
    variance = float(np.mean((wanted**2).mean(axis=1) - targets**2))
    return math.sqrt(variance / max(setting.n_workers * setting.share, 1.0))


def prior_spread(domain: Domain) -> float:
    """The error of a guess: the middle of the scale, or equal shares when all shares are equally likely."""
    if isinstance(domain, Scale):
        return domain.range / math.sqrt(12)
    k = domain.size
    return math.sqrt((k - 1) / (k**2 * (k + 1)))


def _wanted(domain: Domain) -> tuple[Floats, Floats]:
    """The numbers whose averages are wanted, one row each, and these averages for evenly spread opinions."""
    rows = domain.numbers[None, :] if isinstance(domain, Scale) else np.eye(domain.size)
    return rows, rows.mean(axis=1)
