"""Who may be asked, what each one costs in money and in privacy, and who cannot pay (Kandappu 2015, (4.13), (4.14))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import codes_of, frozen_column, frozen_ids
from crowdveil.errors import InputError

UNPROTECTED = "none"
CENT_DUST = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """One row per worker: level, pay, the ε the new question costs them and the ε they have left.

    The paper also bounds δ, in (4.13), and takes the larger share of ε and δ in (4.14). Every mechanism that can be
    deployed is a table of integers with δ = 0, so both conditions on δ hold always and are left out.

    Level "none" (or an infinite ε) is unprotected: its privacy cost is infinite, whatever the ε column says, and no
    ledger is charged for it.
    """

    workers: NDArray[Any]
    level: NDArray[Any]
    pay: NDArray[np.float64]
    epsilon: NDArray[np.float64]
    remaining: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("workers", "level"):
            object.__setattr__(self, name, frozen_ids(getattr(self, name)))
        for name in ("pay", "epsilon", "remaining"):
            object.__setattr__(self, name, frozen_column(getattr(self, name), np.float64))
            _check_column(name, getattr(self, name), infinite=name != "pay")
        if len(codes_of([str(worker) for worker in self.workers])[1]) != len(self.workers):
            raise InputError("every worker must have one row; got one twice", fix="remove one of them", field="worker")

    def __len__(self) -> int:
        return len(self.workers)

    @property
    def unprotected(self) -> NDArray[np.bool_]:
        flags: NDArray[np.bool_] = np.isinf(self.epsilon) | np.array(
            [str(level) == UNPROTECTED for level in self.level]
        )
        return flags

    def can_pay(self) -> NDArray[np.bool_]:
        """Enough privacy budget left; the unprotected spend none of it, since nothing is promised to them."""
        allowed: NDArray[np.bool_] = self.unprotected | (self.epsilon <= self.remaining)
        return allowed

    def affordable(self, budget: float) -> NDArray[np.bool_]:
        """Paid from what is left of the money (sums of cents carry dust)."""
        allowed: NDArray[np.bool_] = self.pay <= budget + CENT_DUST
        return allowed

    def costs(self, budget: float, fairness: float) -> NDArray[np.float64]:
        """F_i of (4.14): money and privacy as shares of what is left of each; infinite for the unprotected."""
        money = (1 - fairness) * self.pay / budget
        if fairness == 0:
            return money
        share = np.full(len(self), np.inf)
        charged = ~self.unprotected & (self.remaining > 0)
        share[charged] = self.epsilon[charged] / self.remaining[charged]
        return money + fairness * share


def _check_column(name: str, values: NDArray[np.float64], *, infinite: bool) -> None:
    wrong = np.isnan(values) | (values < 0) | (np.isinf(values) & (not infinite))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"{name} must be a number from 0 up; got {values[row]}", row=row + 1, field=name)
