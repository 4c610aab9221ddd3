"""The result of a selection: who is asked, what it costs, what error to expect and why it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import InputError
from crowdveil.exact import json_number
from crowdveil.selection.candidates import CENT_DUST, Candidates
from crowdveil.selection.estimator import Estimator
from crowdveil.selection.group_error import GroupError
from crowdveil.selection.history import History
from crowdveil.selection.paper_error import PrintedError

SPENT = "nobody else who can pay fits in the budget"
EVERYONE = "everyone who can pay is chosen"
HARMFUL = "one more worker would raise the expected error"
ONLY_UNPROTECTED = "only unprotected workers are left, and with fairness above 0 their privacy cost is infinite"
ENOUGH_WORKERS = "as many workers as wanted are chosen"
NOBODY = "nobody has enough of their privacy budget left"
TOO_DEAR = "nobody who has enough of their privacy budget left can be paid from this budget"


@dataclass(frozen=True, slots=True)
class Selection:
    """The workers that were chosen, what they cost, and the error to expect.

    `expected_rmse` is for a new question, `printed_rmse` is (4.12) as printed, which is too small.

    `estimator` is whose error `expected_rmse` is; (4.12) is always that of the plain mean.
    """

    policy: str
    chosen: tuple[Any, ...]
    cost: float
    expected_rmse: float
    printed_rmse: float
    stopped_because: str
    estimator: Estimator
    rmse_without_exploration: float | None = None

    def to_json(self) -> dict[str, object]:
        return {
            "policy": self.policy,
            "chosen": [str(worker) for worker in self.chosen],
            "cost": round(self.cost, 9),
            "expected_rmse": json_number(self.expected_rmse),
            "printed_rmse": json_number(self.printed_rmse),
            "stopped_because": self.stopped_because,
            "estimator": str(self.estimator),
            "rmse_without_exploration": self.rmse_without_exploration,
        }


def build_selection(
    policy: str,
    history: History,
    candidates: Candidates,
    picks: list[int],
    budget: float,
    because: str = "",
    *,
    given: Sequence[int] = (),
    estimator: Estimator | None = None,
) -> Selection:
    """The selection of these candidates, with both errors of the group that they and those `given` make up.

    `estimator` is the one that a broker uses for the history's domain unless the policy was made for another.
    """
    estimator = estimator or history.estimator
    remaining = budget - float(candidates.pay[picks].sum())
    members = [*given, *picks]
    expected = rmse(GroupError(history, candidates, estimator), members)
    printed = rmse(PrintedError(history, candidates), members)
    return Selection(
        policy,
        tuple(candidates.workers[picks].tolist()),
        float(candidates.pay[picks].sum()),
        expected,
        printed,
        because or _why_ended(candidates, picks, remaining, given),
        estimator,
    )


def rmse(group: GroupError | PrintedError, members: Sequence[int] = ()) -> float:
    """The root of a group's squared error, with these added to it; one that is estimated below zero counts as zero."""
    for row in members:
        group.add(row)
    return float(np.sqrt(max(group.squared_error(), 0.0)))


def fill(order: NDArray[Any], candidates: Candidates, budget: float) -> list[int]:
    """Take workers in this order as long as they can pay and the money lasts; one too dear is passed over."""
    picks, remaining = [], budget
    able, pay = candidates.can_pay(), candidates.pay
    for row in order.tolist():
        if able[row] and pay[row] <= remaining + CENT_DUST:
            picks.append(row)
            remaining -= float(pay[row])
    return picks


def check_budget(budget: float) -> float:
    if not np.isfinite(budget) or budget <= 0:
        raise InputError(f"the budget must be a positive number; got {budget}", fix="give what may be spent on pay")
    return float(budget)


def _why_ended(candidates: Candidates, picks: list[int], remaining: float, given: Sequence[int]) -> str:
    open_ = candidates.can_pay()
    open_[[*given, *picks]] = False
    if not picks and not given:
        return TOO_DEAR if open_.any() else NOBODY
    return SPENT if open_.any() and not (open_ & candidates.affordable(remaining)).any() else EVERYONE
