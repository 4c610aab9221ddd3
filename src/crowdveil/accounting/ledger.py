"""The ledger: charges before a report is drawn, refuses what would pass the budget, and says why with numbers.

Accept a release iff Σε ≤ ε_max or Σρ ≤ ρ_max(ε_max, δ_max). This is sound even when every question depends on
all earlier reports; the argument stands in `docs/explain/ledger-soundness.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from crowdveil.accounting.conversion import DEFAULT_DELTA, rho_max
from crowdveil.accounting.nano import SATURATED, from_nano, nano_down, nano_up
from crowdveil.accounting.spend import Spend
from crowdveil.accounting.storage import NOTHING, Charge, Line, MemoryStorage, Receipt, Storage
from crowdveil.errors import BudgetError, InputError
from crowdveil.guarantee import Epsilon, round_down, round_up
from crowdveil.validation import Rule, check_settings

CARRIED_OVER = "carried-over"
ONE_BY_ONE = "one-by-one"


@dataclass(frozen=True, slots=True)
class OneByOne:
    """Answers to one pool, each protected by itself: `epsilon` is the largest of one answer, `total` their sum."""

    count: int
    epsilon: float
    total: float

    def __str__(self) -> str:
        return (
            f"{self.count} answers protected one by one at ε {round_up(self.epsilon)}, outside your cap; "
            f"if tasks concern one thing, together up to ε {round_up(self.total)}"
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """The ceiling a worker sets: (ε, δ) for everything the ledger will ever accept. δ = 0 is allowed: then only Σε
    counts.
    """

    epsilon: Epsilon
    delta: Annotated[float, Rule("0, or above 0 and below 1", lambda delta: 0 <= delta < 1)] = DEFAULT_DELTA
    cap: Charge = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_settings(self)
        cap = Charge(nano_down(self.epsilon), nano_down(rho_max(self.epsilon, self.delta)))
        object.__setattr__(self, "cap", cap)

    @property
    def rho(self) -> float:
        return from_nano(self.cap.rho)


@dataclass(frozen=True, slots=True)
class Loss:
    """What a worker has spent, and beside it, by name, what is protected one by one and what is not protected.

    The three are never added: a guarantee for single answers is none for all of them together.
    """

    epsilon: float
    rho: float
    unprotected: dict[str, int]
    one_by_one: dict[str, OneByOne] = field(default_factory=dict)

    def __str__(self) -> str:
        words = f"ε {round_up(self.epsilon)}, ρ {round_up(self.rho)} spent"
        names = ", ".join(f"{name} ({count})" for name, count in self.unprotected.items())
        words += "".join(f"; {name}: {answers}" for name, answers in self.one_by_one.items())
        return words + (f"; not protected, and not in these numbers: {names}" if names else "")


class Ledger:
    """A worker's privacy budget: append-only, idempotent by key; a charge that does not fit is refused as a whole.

    >>> from crowdveil.accounting.events import PureLaw
    >>> ledger = Ledger(Budget(1, 0))
    >>> ledger.charge("ada", Spend(PureLaw(0.75), "health"), key="study 1").number
    1
    >>> ledger.charge("ada", Spend(PureLaw(0.5), "income"), key="study 2")
    Traceback (most recent call last):
    crowdveil.errors.BudgetError: worker 'ada' has ε 0.25 (ρ 0) left but 'income' costs ε 0.5 (ρ 0.1225); choose a ...
    """

    def __init__(self, budget: Budget, storage: Storage | None = None) -> None:
        self.budget = budget
        self._storage: Storage = MemoryStorage() if storage is None else storage

    def charge(self, worker: str, *spends: Spend, key: str, at_stake: int | None = None) -> Receipt:
        """Charge all the spends together, or raise BudgetError and charge nothing.

        With `at_stake`, at most so many of the reports can differ (see `cells_at_stake`): the dearest are charged.

        A key that was charged before returns its receipt at no cost, so a retry is free; it must be the same release.
        """
        wanted = self._receipt(worker, spends, key, at_stake)
        receipt = self._storage.record(wanted, None if wanted.charge == NOTHING else self.budget.cap)
        if receipt is None:
            raise self._refusal(worker, wanted, _names(spends))
        if not receipt.same_release(wanted):
            raise InputError(f"key {key!r} was already used for another release", fix="use a new key for each release")
        return receipt

    def release(
        self, worker: str, *spends: Spend, key: str, draw: Callable[[], str], at_stake: int | None = None
    ) -> str:
        """Charge, then draw, then store what was drawn, and return what is stored: only that may leave the device.

        After a crash anywhere in between, calling again neither charges twice nor lets a second draw out.
        """
        self.charge(worker, *spends, key=key, at_stake=at_stake)
        return self._draw_once(worker, key, draw)

    def release_one_by_one(
        self, worker: str, spend: Spend, *, pool: str, ceiling: float, key: str, draw: Callable[[], str]
    ) -> str:
        """Release answers to a pool each of which is protected by itself, as `release` does but outside the budget.

        The worker's own `ceiling` bounds Σε of the pool, exactly: the total of answers that concern one thing is Σε,
        and no (ε, δ) total is stated. The release is listed with the worker's loss under the spend's name.
        """
        if not spend.protected or not spend.law.chargeable:
            raise InputError(f"{spend.name!r} is not protected, so none of its answers is protected one by one")
        line = _line(spend)
        charge = Charge(line.epsilon, line.rho)
        # The pool has sums of its own; a ρ of 0 leaves only Σε to be within the ceiling.
        wanted = Receipt(f"{worker} {ONE_BY_ONE} {pool}", key, charge, (line,))
        receipt = self._storage.record(wanted, Charge(nano_down(ceiling), 0))
        if receipt is None:
            left = max(0, nano_down(ceiling) - self._storage.spent(wanted.worker).epsilon)
            raise BudgetError(
                f"your ceiling for {spend.name!r} leaves ε {round_down(from_nano(left))} but the batch adds up to "
                f"ε {round_up(from_nano(charge.epsilon))}",
                fix="raise the ceiling of this pool, or stop here",
                worker=worker,
                cost=from_nano(charge.epsilon),
                left=from_nano(left),
                cost_rho=from_nano(charge.rho),
                left_rho=0.0,
            )
        if not receipt.same_release(wanted):
            raise InputError(f"key {key!r} was already used for another release", fix="use a new key for each release")
        listed = Line(ONE_BY_ONE, spend.name, line.unit, line.count, line.epsilon, line.rho)
        self._storage.record(Receipt(worker, key, NOTHING, (listed,)), None)
        return self._draw_once(worker, key, draw)

    def _draw_once(self, worker: str, key: str, draw: Callable[[], str]) -> str:
        stored = self._storage.kept(worker, key)
        return self._storage.keep(worker, key, draw()) if stored is None else stored

    def affords(self, worker: str, *spends: Spend, at_stake: int | None = None) -> bool:
        """Whether `charge` would accept now."""
        wanted = self._receipt(worker, spends, "", at_stake)
        return wanted.charge == NOTHING or (self._storage.spent(worker) + wanted.charge).within(self.budget.cap)

    def loss(self, worker: str) -> Loss:
        """Everything charged so far."""
        spent = self._storage.spent(worker)
        unprotected: dict[str, int] = {}
        one_by_one: dict[str, list[Line]] = {}
        for line in (line for receipt in self.receipts(worker) for line in receipt.lines):
            if line.kind == "unprotected":
                unprotected[line.name] = unprotected.get(line.name, 0) + line.count
            elif line.kind == ONE_BY_ONE:
                one_by_one.setdefault(line.name, []).append(line)
        listed = {name: _sum_answers(lines) for name, lines in one_by_one.items()}
        return Loss(from_nano(spent.epsilon), from_nano(spent.rho), unprotected, listed)

    def left(self, worker: str) -> Loss:
        """What remains in each currency; a release needs to fit into one of them."""
        remaining = self._remaining(worker)
        return Loss(from_nano(remaining.epsilon), from_nano(remaining.rho), {})

    def receipts(self, worker: str) -> tuple[Receipt, ...]:
        return self._storage.receipts(worker)

    def carry_over(self, worker: str, *, epsilon: float, rho: float, key: str) -> Receipt:
        """Start no lower than what is known elsewhere (another device, the broker's mirror): adds only the difference.

        It is recorded even past the cap, because it has been spent.
        """
        if not (epsilon >= 0 and rho >= 0):
            raise InputError(f"what is carried over must be 0 or more; got ε {epsilon} and ρ {rho}")
        spent = self._storage.spent(worker)
        difference = Charge(max(0, nano_up(epsilon) - spent.epsilon), max(0, nano_up(rho) - spent.rho))
        line = Line(CARRIED_OVER, CARRIED_OVER, "vector", 1, difference.epsilon, difference.rho)
        receipt = self._storage.record(Receipt(worker, key, difference, (line,)), None)
        assert receipt is not None
        after = self._storage.spent(worker)
        if after.epsilon < nano_up(epsilon) or after.rho < nano_up(rho):
            raise InputError(f"key {key!r} was already used to carry over less", fix="use a new key for each amount")
        return receipt

    def _receipt(self, worker: str, spends: tuple[Spend, ...], key: str, at_stake: int | None) -> Receipt:
        if not spends:
            raise InputError("a charge needs at least one spend; got none")
        if at_stake is not None and at_stake < 1:
            raise InputError(f"at least one report is at stake in every release; got {at_stake}")
        if at_stake is not None and any(spend.protected and not spend.law.protects_participation for spend in spends):
            raise InputError(
                "a bound on what is at stake needs protected participation: elsewhere every report tells of an answer",
                fix="charge all the reports",
            )
        lines = tuple(_line(spend) for spend in spends)
        for spend in spends:
            if not spend.law.chargeable:
                raise self._unchargeable(worker, spend)
        return Receipt(worker, key, _total(spends, at_stake), lines)

    def _remaining(self, worker: str) -> Charge:
        cap, spent = self.budget.cap, self._storage.spent(worker)
        return Charge(max(0, cap.epsilon - spent.epsilon), max(0, cap.rho - spent.rho))

    def _refusal(self, worker: str, wanted: Receipt, names: str) -> BudgetError:
        remaining, cost = self._remaining(worker), wanted.charge
        return BudgetError(
            f"worker {worker!r} has ε {round_down(from_nano(remaining.epsilon))} "
            f"(ρ {round_down(from_nano(remaining.rho))}) left "
            f"but {names} costs ε {round_up(from_nano(cost.epsilon))} (ρ {round_up(from_nano(cost.rho))})",
            fix="choose a higher level of privacy or raise the cap",
            worker=worker,
            cost=from_nano(cost.epsilon),
            left=from_nano(remaining.epsilon),
            cost_rho=from_nano(cost.rho),
            left_rho=from_nano(remaining.rho),
        )

    def _unchargeable(self, worker: str, spend: Spend) -> BudgetError:
        remaining = self._remaining(worker)
        reason = "has δ above 0 at every ε" if math.isinf(spend.epsilon) else "is not an independent release"
        return BudgetError(
            f"{spend.name!r} ({spend.kind}) {reason}, and a ledger does not take it",
            fix="use a channel mechanism such as randomized-response",
            worker=worker,
            cost=spend.epsilon,
            left=from_nano(remaining.epsilon),
            cost_rho=spend.rho,
            left_rho=from_nano(remaining.rho),
        )


def _sum_answers(lines: list[Line]) -> OneByOne:
    """In whole nano-units. The answers of a line went through one channel, so each costs its share of the sum."""
    largest = max(line.epsilon // line.count for line in lines)
    count, total = (sum(amounts) for amounts in zip(*((line.count, line.epsilon) for line in lines), strict=True))
    return OneByOne(count, from_nano(largest), from_nano(total))


def _each(spend: Spend) -> tuple[int, int]:
    """What one report is charged: rounded up for each, so that it does not depend on how reports are grouped."""
    return (nano_up(spend.law.epsilon), nano_up(spend.law.rho)) if spend.protected else (0, 0)


def _line(spend: Spend) -> Line:
    epsilon, rho = (min(spend.count * unit_cost, SATURATED) for unit_cost in _each(spend))
    return Line(spend.kind, spend.name, spend.law.unit, spend.count, epsilon, rho)


def _total(spends: tuple[Spend, ...], at_stake: int | None) -> Charge:
    """The sum; where only some reports are at stake, of the dearest in each currency, which need not be the same."""
    most = sum(spend.count for spend in spends) if at_stake is None else at_stake
    epsilon, rho = ([(_each(spend)[currency], spend.count) for spend in spends] for currency in (0, 1))
    return Charge(_dearest(epsilon, most), _dearest(rho, most))


def _dearest(amounts: list[tuple[int, int]], most: int) -> int:
    total = 0
    for unit_cost, count in sorted(amounts, reverse=True):
        taken = min(count, most)
        total, most = total + unit_cost * taken, most - taken
    return min(total, SATURATED)


def _names(spends: tuple[Spend, ...]) -> str:
    first = repr(spends[0].name)
    return first if len(spends) == 1 else f"{first} with {len(spends) - 1} more"
