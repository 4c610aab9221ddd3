"""Budgeted greedy: the group with the most information that the money buys (Kandappu et al. 2015, (4.13)).

The information of a group is 1/RMSE² of the estimate that is made of its reports. With inverse-variance weights and
independent workers without bias it is Σ 1/(τ² + γᵢ²), so that (4.13) is a knapsack: greedy by information per cost can
be arbitrarily bad, the better of it and of a start from the best single worker cannot (Khuller, Moss & Naor, "The
budgeted maximum coverage problem", 1999). Biases, shared factors and the equal weights of shares make the information
of a group more or less than that sum; exchanges of members repair what greedy did not foresee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.selection.candidates import CENT_DUST, Candidates
from crowdveil.selection.greedy import FAIRNESS, FREE, unprotected_reason
from crowdveil.selection.group_error import GroupError
from crowdveil.selection.history import Floats, History
from crowdveil.selection.result import ENOUGH_WORKERS, HARMFUL, Selection, build_selection, check_budget, rmse
from crowdveil.validation import NotNegative, check_settings

# Information is infinite where nothing errs; ratios of it need a number.
_MIN_SQUARED_ERROR = 1e-15
_MIN_IMPROVEMENT = 1e-9
MIN_OUTSIDERS = 16
"""With so few workers or fewer all are tried."""
MAX_EXCHANGED = 500
"""Larger groups are left as they are: one member of them changes the error by a thousandth."""
MAX_PASSES = 5
"""Passes of exchanges over the members; of 300 crowds of 10 to 200 workers one took five, none was cut short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetedGreedy:
    """Most information per cost, the start from the best single worker, then exchanges.

    `fairness` (α) moves the cost from money to the share of privacy used up, as in `Greedy`. Above 0 an exchange must
    not raise the sum of the costs F (4.14) of the greedy group.

    `exploration` is how much of what is not known of a worker's bias and scatter is subtracted from their variance when
    groups are compared (an upper confidence bound on information), so that newcomers and workers with few reports are
    tried. The error that is named stays the expected one, with that of the choice without exploration beside it.

    The error is that of the estimator that a broker uses: inverse-variance mean of ratings, frequency of choices.
    """

    name: ClassVar[str] = "budgeted-greedy"
    summary: ClassVar[str] = "the group with the smallest expected error that the money buys, by information per cost"
    fairness: Annotated[float, FAIRNESS] = 0.0
    exploration: NotNegative = 0.0

    def __post_init__(self) -> None:
        check_settings(self)

    def select(
        self,
        history: History,
        candidates: Candidates,
        budget: float,
        *,
        given: Sequence[int] = (),
        max_workers: int | None = None,
    ) -> Selection:
        """`given` are rows of candidates who are in the group already: the choice goes on from them, at no cost.

        At most `max_workers` are added to them.
        """
        cost = np.maximum(candidates.costs(check_budget(budget), self.fairness), FREE)
        knapsack = _Knapsack(candidates, cost, budget, given, max_workers)
        expected = GroupError(history, candidates, history.estimator)
        optimistic = GroupError(history, candidates, history.estimator, exploration=self.exploration)
        picks = self._choose(knapsack, optimistic)
        open_ = knapsack.open_without(picks)
        because = unprotected_reason(open_, candidates, cost)
        if len(picks) == max_workers and open_.any():
            because = ENOUGH_WORKERS
        elif knapsack.allowed(picks).any():
            because = HARMFUL
        selection = build_selection(
            self.name, history, candidates, picks, budget, because, given=given, estimator=history.estimator
        )
        if self.exploration == 0:
            return selection
        unexplored = self._choose(knapsack, expected)
        expected.set_members(())
        return replace(selection, rmse_without_exploration=rmse(expected, [*given, *unexplored]))

    def _choose(self, knapsack: _Knapsack, group: GroupError) -> list[int]:
        knapsack.group = group
        adaptive = knapsack.fill([])
        if self.fairness > 0:
            knapsack.max_cost = float(knapsack.cost[adaptive].sum())
        alone = knapsack.errors_alone()
        starts = [adaptive, knapsack.fill(knapsack.best_addition([]))]
        starts += [knapsack.take(np.argsort(key, kind="stable")) for key in (alone * knapsack.cost, alone)]
        # In a mean of equal weights one precise report and many noisy ones do not mix.
        for level in np.unique(knapsack.level):
            rows = np.flatnonzero(knapsack.level == level)
            starts.append(knapsack.take(rows[np.argsort(alone[rows], kind="stable")]))
        picks = knapsack.exchange(min(starts, key=knapsack.squared_error))
        knapsack.max_cost = np.inf
        return knapsack.order(knapsack.fill(picks))


class _Knapsack:
    """Groups of at most `max_workers` who can pay, whose pay is at most `money` and whose cost at most `max_cost`."""

    group: GroupError

    def __init__(
        self, candidates: Candidates, cost: Floats, money: float, given: Sequence[int], max_workers: int | None
    ) -> None:
        self.pay, self.cost, self.money, self.given = candidates.pay, cost, money, list(given)
        self.level = np.array([str(level) for level in candidates.level])
        self.max_cost, self.max_workers = np.inf, len(cost) if max_workers is None else max_workers
        self.open = candidates.can_pay() & np.isfinite(cost)
        self.open[self.given] = False

    def open_without(self, picks: Sequence[int]) -> NDArray[np.bool_]:
        open_ = self.open.copy()
        open_[list(picks)] = False
        return open_

    def allowed(self, picks: Sequence[int]) -> NDArray[np.bool_]:
        """Who can be added to these."""
        rows = list(picks)
        if len(rows) >= self.max_workers:
            return np.zeros(len(self.open), dtype=bool)
        money = self.money - float(self.pay[rows].sum()) + CENT_DUST
        cost = self.max_cost - float(self.cost[rows].sum()) + CENT_DUST
        allowed: NDArray[np.bool_] = self.open_without(rows) & (self.pay <= money) & (self.cost <= cost)
        return allowed

    def squared_error(self, picks: Sequence[int]) -> float:
        self.group.set_members([*self.given, *picks])
        return self.group.squared_error()

    def best_addition(self, picks: Sequence[int]) -> list[int]:
        """The worker who lowers the error of these most, whatever the cost."""
        allowed = self.allowed(picks)
        self.group.set_members([*self.given, *picks])
        return [int(np.argmin(np.where(allowed, self.group.with_each(), np.inf)))] if allowed.any() else []

    def errors_alone(self) -> Floats:
        """RMSE² of every candidate as a group of one: the inverse of the information that adds up in a knapsack."""
        self.group.set_members(())
        return np.maximum(self.group.with_each(), _MIN_SQUARED_ERROR)

    def take(self, order: NDArray[np.int64]) -> list[int]:
        """Take workers in this order as long as the money lasts; the group with the least error on the way."""
        picks, errors = list[int](), [self.squared_error([])]
        money, cost = self.money + CENT_DUST, self.max_cost + CENT_DUST
        for row in order[self.open[order]].tolist():
            if self.pay[row] <= money and self.cost[row] <= cost and len(picks) < self.max_workers:
                money, cost = money - self.pay[row], cost - self.cost[row]
                picks.append(row)
                self.group.add(row)
                errors.append(self.group.squared_error())
        return picks[: int(np.argmin(errors))]

    def fill(self, start: Sequence[int]) -> list[int]:
        """Add the most information per cost until the money is gone; the group with the least error on the way."""
        picks, errors = list(start), [self.squared_error(start)]
        while (allowed := self.allowed(picks)).any():
            best, error = self._best_density(allowed, errors[-1])
            picks.append(best)
            errors.append(error)
            self.group.add(best)
        # Two more may lower what one more raises, as where two camps are asked in turn; so the whole way is looked at.
        least = np.array(errors)
        n_added = int(np.argmax(least <= least.min() * (1 + 1e-12)))
        return picks[: len(start) + n_added]

    def exchange(self, picks: list[int]) -> list[int]:
        """Leave one member out, or take one more in, and fill up again, as long as that lowers the error."""
        error = self.squared_error(picks)
        for _ in range(MAX_PASSES if len(picks) <= MAX_EXCHANGED else 0):
            before = error
            for row in [*picks, *self._best_outsiders(picks)]:
                rest = [member for member in picks if member != row]
                starts = [self._make_room(picks, row)] if row not in picks else [rest, rest + self.best_addition(rest)]
                group = min((self.fill(start) for start in starts), key=self.squared_error)
                if (squared := self.squared_error(group)) < error * (1 - _MIN_IMPROVEMENT):
                    picks, error = group, squared
            if error == before:
                break
        return picks

    def _best_outsiders(self, picks: Sequence[int]) -> list[int]:
        """Those who would lower the error most if they could be paid, as many as there are members."""
        outside = np.flatnonzero(self.open_without(picks) & (self.pay <= self.money + CENT_DUST))
        self.group.set_members([*self.given, *picks])
        order = np.argsort(self.group.with_each()[outside], kind="stable")
        rows: list[int] = outside[order][: max(len(picks), MIN_OUTSIDERS)].tolist()
        return rows

    def _make_room(self, picks: Sequence[int], outsider: int) -> list[int]:
        """Take the outsider in and leave out those who add least information per cost until the money suffices."""
        picks = list(picks)
        while picks and not self.allowed(picks)[outsider]:
            self.group.set_members([*self.given, *picks, outsider])
            loss = 1 / max(self.group.squared_error(), _MIN_SQUARED_ERROR) - 1 / np.maximum(
                self.group.without_each(picks), _MIN_SQUARED_ERROR
            )
            del picks[int(np.argmin(loss / self.cost[picks]))]
        return [*picks, outsider] if self.allowed(picks)[outsider] else picks

    def order(self, picks: list[int]) -> list[int]:
        """These, most information per cost first: who asks fewer takes the first."""
        left, ordered = np.zeros(len(self.open), dtype=bool), list[int]()
        left[picks] = True
        self.group.set_members(self.given)
        error = self.group.squared_error()
        while left.any():
            best, error = self._best_density(left, error)
            self.group.add(best)
            ordered.append(best)
            left[best] = False
        return ordered

    def _best_density(self, allowed: NDArray[np.bool_], error: float) -> tuple[int, float]:
        """The most information per cost, of equals the cheapest, then the first; and the error with it."""
        errors = self.group.with_each()
        gain = 1 / np.maximum(errors, _MIN_SQUARED_ERROR) - 1 / max(error, _MIN_SQUARED_ERROR)
        density = np.where(allowed, gain / self.cost, -np.inf)
        ties = np.flatnonzero(density == density.max())
        best = int(ties[np.argmin(self.cost[ties])])
        return best, float(errors[best])
