"""Who is asked next. A selector never picks a worker who cannot pay, in money's or in privacy's terms."""

from __future__ import annotations

from typing import ClassVar, Protocol

from crowdveil.errors import InputError
from crowdveil.selection.best_predictors import BestPredictors
from crowdveil.selection.budgeted_greedy import BudgetedGreedy
from crowdveil.selection.candidates import Candidates
from crowdveil.selection.cheapest import Cheapest
from crowdveil.selection.estimator import Estimator
from crowdveil.selection.greedy import Greedy
from crowdveil.selection.group_error import GroupError
from crowdveil.selection.history import History
from crowdveil.selection.random_workers import RandomWorkers
from crowdveil.selection.result import Selection


class Selector(Protocol):
    """The interface of a selection policy: configuration only, whose `select` chooses workers within a budget."""

    name: ClassVar[str]
    summary: ClassVar[str]

    def select(self, history: History, candidates: Candidates, budget: float) -> Selection:
        """Choose workers whose pay sums to at most `budget`."""
        ...


POLICIES: dict[str, type[BudgetedGreedy | Greedy | RandomWorkers | BestPredictors | Cheapest]] = {
    kind.name: kind for kind in (BudgetedGreedy, Greedy, RandomWorkers, BestPredictors, Cheapest)
}
"""The selection policies by name, as `crowdveil select` and `selector` use them."""

__all__ = [
    "POLICIES",
    "BestPredictors",
    "BudgetedGreedy",
    "Candidates",
    "Cheapest",
    "Estimator",
    "Greedy",
    "GroupError",
    "History",
    "RandomWorkers",
    "Selection",
    "Selector",
    "selector",
]


def selector(
    name: str,
    *,
    fairness: float = 0.0,
    exploration: float = 0.0,
    paper_mode: bool = False,
    seed: int | None = None,
) -> Selector:
    """Create a selection policy by its name; settings that a policy does not have are ignored.

    >>> selector("budgeted-greedy", fairness=0.5)
    BudgetedGreedy(fairness=0.5, exploration=0.0)
    """
    if name not in POLICIES:
        raise InputError(f"policy must be one of {', '.join(POLICIES)}; got {name!r}")
    if name == BudgetedGreedy.name:
        return BudgetedGreedy(fairness=fairness, exploration=exploration)
    if name == Greedy.name:
        return Greedy(fairness=fairness, paper_mode=paper_mode)
    if name == RandomWorkers.name:
        return RandomWorkers(seed=seed)
    return BestPredictors() if name == BestPredictors.name else Cheapest()
