"""Best predictors: those whose own past reports were nearest to the crowd, noise included (Kandappu 2015, §4.5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdveil.selection.candidates import Candidates
from crowdveil.selection.group_error import GroupError
from crowdveil.selection.history import History
from crowdveil.selection.result import Selection, build_selection, check_budget, fill


@dataclass(frozen=True, slots=True, kw_only=True)
class BestPredictors:
    """Smallest μ² + σ² of the worker alone, (4.6) and (4.7), without looking at money or at the rest of the group.

    Both are drawn towards the crowd's: of few past questions the smallest are small by chance.
    """

    name: ClassVar[str] = "best-predictors"
    summary: ClassVar[str] = "workers whose own past reports were nearest to the crowd's average"

    def select(self, history: History, candidates: Candidates, budget: float) -> Selection:
        order = np.argsort(GroupError(history, candidates).with_each(), kind="stable")
        picks = fill(order, candidates, check_budget(budget))
        return build_selection(self.name, history, candidates, picks, budget)
