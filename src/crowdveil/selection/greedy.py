"""Greedy: always the worker who lowers the expected error most per unit of cost (Kandappu 2015, Algorithm 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.selection.candidates import Candidates
from crowdveil.selection.group_error import GroupError
from crowdveil.selection.history import Floats, History
from crowdveil.selection.selection import HARMFUL, ONLY_UNPROTECTED, Selection, check_budget, finished
from crowdveil.settings import Rule, check_settings

# A worker who costs nothing at all is divided by this instead of by zero.
_FREE = 1e-12
_FAIRNESS = Rule("from 0 (money only) to 1 (privacy only)", lambda fairness: 0 <= fairness <= 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy:
    """`fairness` (α) moves the cost from money to the share of privacy used up. Stops before the next worker harms.

    The first worker is measured against the worst single candidate, since a group of nobody has no error. `paper_mode`
    follows the print instead: (4.12) without the covariance, and spending until the money is gone.
    """

    name: ClassVar[str] = "greedy"
    summary: ClassVar[str] = "the worker who lowers the expected error most per unit of cost, until that harms"
    fairness: Annotated[float, _FAIRNESS] = 0.0
    paper_mode: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    def select(
        self, history: History, candidates: Candidates, budget: float, *, given: Sequence[int] = ()
    ) -> Selection:
        """`given` are rows of candidates who are in the group already: the choice goes on from them, at no cost."""
        left = check_budget(budget)
        group = GroupError(history, candidates, as_printed=self.paper_mode)
        cost = np.maximum(candidates.costs(budget, self.fairness), _FREE)
        open_, picks, because = candidates.can_pay() & np.isfinite(cost), list[int](), ""
        for row in given:
            group.add(row)
            open_[row] = False
        error = group.rmse()
        while (allowed := open_ & candidates.affordable(left)).any():
            errors = np.sqrt(np.maximum(group.with_each(), 0.0))
            before = error if group.size else float(errors[allowed].max())
            best = _best(before - errors, cost, allowed)
            if group.size and errors[best] >= before and not self.paper_mode:
                because = HARMFUL
                break
            group.add(best)
            picks.append(best)
            open_[best], error, left = False, float(errors[best]), left - float(candidates.pay[best])
        because = because or _unprotected(open_, candidates, cost)
        return finished(self.name, group, candidates, picks, budget, because, given=given)


def _best(gain: Floats, cost: Floats, allowed: NDArray[np.bool_]) -> int:
    """The largest β = gain / cost (4.15); among equals the cheapest, then the first."""
    beta = np.where(allowed, gain / cost, -np.inf)
    ties = np.flatnonzero(beta == beta.max())
    return int(ties[np.argmin(cost[ties])])


def _unprotected(open_: NDArray[np.bool_], candidates: Candidates, cost: Floats) -> str:
    left_out = candidates.can_pay() & np.isinf(cost)
    return ONLY_UNPROTECTED if left_out.any() and not open_.any() else ""
