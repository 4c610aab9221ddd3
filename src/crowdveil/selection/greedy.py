"""Greedy: always the worker who lowers the expected error most per unit of cost (Kandappu 2015, Algorithm 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.selection.candidates import Candidates
from crowdveil.selection.estimator import Estimator
from crowdveil.selection.group_error import GroupError
from crowdveil.selection.history import Floats, History
from crowdveil.selection.paper_error import PrintedError
from crowdveil.selection.result import HARMFUL, ONLY_UNPROTECTED, Selection, build_selection, check_budget, rmse
from crowdveil.validation import Rule, check_settings

# A worker who costs nothing at all is divided by this instead of by zero.
FREE = 1e-12
FAIRNESS = Rule("from 0 (money only) to 1 (privacy only)", lambda fairness: 0 <= fairness <= 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy:
    """`fairness` (α) moves the cost from money to the share of privacy used up. Stops where more workers would harm.

    Error and harm are those of the group's plain mean, as in the paper. Estimates of ratings weigh reports by
    inverse variance where levels of privacy differ (`population-mean`); there a noisy worker adds little, never harm.

    The first worker is measured against the worst single candidate, since a group of nobody has no error. `paper_mode`
    follows the print instead: the error by (4.12), and spending until the money is gone.
    """

    name: ClassVar[str] = "greedy"
    summary: ClassVar[str] = "the worker who lowers the expected error most per unit of cost, until that harms"
    fairness: Annotated[float, FAIRNESS] = 0.0
    paper_mode: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    def select(
        self, history: History, candidates: Candidates, budget: float, *, given: Sequence[int] = ()
    ) -> Selection:
        """`given` are rows of candidates who are in the group already: the choice goes on from them, at no cost."""
        remaining = check_budget(budget)
        group = (PrintedError if self.paper_mode else GroupError)(history, candidates)
        cost = np.maximum(candidates.costs(budget, self.fairness), FREE)
        open_, picks, errors = candidates.can_pay() & np.isfinite(cost), list[int](), list[float]()
        open_[list(given)] = False
        error = first = rmse(group, given)
        while (allowed := open_ & candidates.affordable(remaining)).any():
            errors_with = np.sqrt(np.maximum(group.with_each(), 0.0))
            before = error if group.size else float(errors_with[allowed].max())
            best = _best(before - errors_with, cost, allowed)
            group.add(best)
            picks.append(best)
            errors.append(float(errors_with[best]))
            open_[best], error, remaining = False, errors[-1], remaining - float(candidates.pay[best])
        because = unprotected_reason(open_, candidates, cost)
        # Two more may lower what one more raises, as where two camps are asked in turn; so the whole way is looked at.
        n_kept = len(picks) if self.paper_mode else _least([first, *errors])
        if n_kept < len(picks):
            picks, because = picks[:n_kept], HARMFUL
        return build_selection(
            self.name, history, candidates, picks, budget, because, given=given, estimator=Estimator.PLAIN_MEAN
        )


def _least(errors: list[float]) -> int:
    """How many picks have the least error; of equals the fewest, but for rounding."""
    values = np.array(errors)
    return int(np.argmax(values <= values.min() * (1 + 1e-12)))


def _best(gain: Floats, cost: Floats, allowed: NDArray[np.bool_]) -> int:
    """The largest β = gain / cost (4.15); among equals the cheapest, then the first."""
    beta = np.where(allowed, gain / cost, -np.inf)
    ties = np.flatnonzero(beta == beta.max())
    return int(ties[np.argmin(cost[ties])])


def unprotected_reason(open_: NDArray[np.bool_], candidates: Candidates, cost: Floats) -> str:
    left_out = candidates.can_pay() & np.isinf(cost)
    return ONLY_UNPROTECTED if left_out.any() and not open_.any() else ""
