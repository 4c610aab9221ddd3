"""How many ticked each box, from reports about whole tick vectors.

The vote of a report for "box b is ticked" is the sum of its unbiased votes for all subsets with b; its mean over
reports is unbiased for the share that ticked b, and its spread gives the interval. The lower bound of the largest
share allows for its having been picked, as that of the commonest option does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from crowdveil.broker.results.tables import Part
from crowdveil.channel import Channel
from crowdveil.inference.uncertainty.summaries import LEVEL, QUANTILE
from crowdveil.reports import Reports


def box_shares(part: Part, reports: Reports, place: int) -> list[dict[str, Any]]:
    """One share with its 95 % interval per box; none for other kinds of questions."""
    if not part.boxes:
        return []
    mine = np.flatnonzero(reports.question == place)
    ticked, answered = np.zeros((len(mine), len(part.boxes))), np.ones(len(mine))
    # Subset number s holds box b when bit b of s is set.
    member = (np.arange(part.domain.size)[:, None] >> np.arange(len(part.boxes))) & 1
    for index, channel in enumerate(reports.channels):
        rows = np.flatnonzero(reports.channel[mine] == index)
        assert isinstance(channel, Channel)
        votes = channel.votes[reports.report[mine[rows]], : part.domain.size]
        ticked[rows] = votes @ member
        answered[rows] = votes.sum(axis=1)
    # Where participation is hidden the number of those who answered is itself an estimate.
    n_answered = float(np.clip(answered.sum(), 1.0, max(len(mine), 1)))
    share = ticked.sum(axis=0) / n_answered
    spread = np.sqrt(((ticked - share * answered[:, None]) ** 2).sum(axis=0)) / n_answered
    quantiles = np.full(len(part.boxes), QUANTILE)
    # The largest of several shares is too large more often than any one of them, so all share the error (Bonferroni).
    quantiles[share.argmax()] = ndtri(1 - (1 - LEVEL) / 2 / len(part.boxes))
    # 0 or 1 is nearer to the truth than a share beyond it, so an interval around it holds the truth at least as often.
    possible = np.clip(share, 0.0, 1.0)
    return [
        {
            "option": box,
            "share": _clipped(possible[bit]),
            "low": _clipped(possible[bit] - quantiles[bit] * spread[bit]),
            "high": _clipped(possible[bit] + QUANTILE * spread[bit]),
        }
        for bit, box in enumerate(part.boxes)
    ]


def _clipped(value: float) -> float:
    return round(float(np.clip(value, 0.0, 1.0)), 6)
