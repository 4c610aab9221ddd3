"""What the reproductions of Wang & Xu share: the paper, the unit of its ε, and the share of wrong labels."""

from __future__ import annotations

import numpy as np

from crowdveil.estimate import Estimate
from crowdveil.simulate import Crowd

PAPER = "Wang, Xu: Inferring ground truth from crowdsourced data under local attribute differential privacy"
UNIT = "ε is per value (the paper's LADP, exact from the channel's integers); a whole answer vector costs m·ε."


def wrong(estimate: Estimate, crowd: Crowd) -> float:
    return float(np.mean(estimate.value != crowd.truth))
