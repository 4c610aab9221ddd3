"""Cheapest: the largest group that the money buys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdveil.selection.candidates import Candidates
from crowdveil.selection.history import History
from crowdveil.selection.result import Selection, build_selection, check_budget, fill


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheapest:
    """Lowest pay first; it also buys the noisiest reports."""

    name: ClassVar[str] = "cheapest"
    summary: ClassVar[str] = "lowest pay first, as many as the money buys"

    def select(self, history: History, candidates: Candidates, budget: float) -> Selection:
        order = np.argsort(candidates.pay, kind="stable")
        picks = fill(order, candidates, check_budget(budget))
        return build_selection(self.name, history, candidates, picks, budget)
