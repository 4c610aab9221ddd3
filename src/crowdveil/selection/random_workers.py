"""Random workers as long as the money lasts: the baseline that any policy must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from crowdveil.entropy import entropy_from, uniforms
from crowdveil.selection.candidates import Candidates
from crowdveil.selection.history import History
from crowdveil.selection.result import Selection, build_selection, check_budget, fill
from crowdveil.validation import SEED, check_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomWorkers:
    """A uniformly random order, from the operating system's entropy unless a seed is given."""

    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "workers in random order, as long as the money lasts"
    seed: Annotated[int | None, SEED] = None

    def __post_init__(self) -> None:
        check_settings(self)

    def select(self, history: History, candidates: Candidates, budget: float) -> Selection:
        order = np.argsort(uniforms(entropy_from(self.seed), len(candidates)))
        picks = fill(order, candidates, check_budget(budget))
        return build_selection(self.name, history, candidates, picks, budget)
