"""Where a ledger keeps what was charged: a small interface, and the one that lives in memory.

The either-or rule is decided inside the storage, in one atomic step, because a ledger that reads, checks and then
writes is overspent by the first race.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, replace
from typing import Any, Protocol

from crowdveil.accounting.nano import add
from crowdveil.errors import InputError


@dataclass(frozen=True, slots=True)
class Charge:
    """Privacy in nano-units, in both currencies of the either-or rule."""

    epsilon: int
    rho: int

    def __post_init__(self) -> None:
        if self.epsilon < 0 or self.rho < 0:
            raise InputError(f"a ledger never falls: a charge must be 0 or more; got {self.epsilon} and {self.rho}")

    def __add__(self, other: Charge) -> Charge:
        return Charge(add(self.epsilon, other.epsilon), add(self.rho, other.rho))

    def within(self, cap: Charge) -> bool:
        """The either-or rule: one of the two sums suffices."""
        return self.epsilon <= cap.epsilon or self.rho <= cap.rho


NOTHING = Charge(0, 0)


@dataclass(frozen=True, slots=True)
class Line:
    """One spend as the ledger remembers it: no table, no answer, no report."""

    kind: str
    name: str
    unit: str
    count: int
    epsilon: int
    rho: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of one charge. `number` counts the worker's receipts from 1; the ledger keeps no clock."""

    worker: str
    key: str
    charge: Charge
    lines: tuple[Line, ...]
    number: int = 0

    def same_release(self, other: Receipt) -> bool:
        return self.charge == other.charge and self.lines == other.lines

    def serialize_lines(self) -> str:
        """The lines as JSON text: integers and words only."""
        rows = [[line.kind, line.name, line.unit, line.count, line.epsilon, line.rho] for line in self.lines]
        return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))

    @staticmethod
    def lines_from(text: str) -> tuple[Line, ...]:
        rows: list[list[Any]] = json.loads(text)
        return tuple(Line(*row) for row in rows)


class Storage(Protocol):
    """The interface of a ledger's storage. Nothing can be removed or lowered."""

    def record(self, receipt: Receipt, cap: Charge | None) -> Receipt | None:
        """Atomically: the receipt stored under this worker and key if there is one; else append this one if the sum
        stays within the cap (always, without a cap); else None, and nothing has changed.
        """
        ...

    def spent(self, worker: str) -> Charge:
        """The sum of everything charged."""
        ...

    def receipts(self, worker: str) -> tuple[Receipt, ...]:
        """All receipts, oldest first."""
        ...

    def keep(self, worker: str, key: str, report: str) -> str:
        """Store what was drawn under this key; if something is there already, that is returned instead."""
        ...

    def kept(self, worker: str, key: str) -> str | None:
        """What was drawn under this key, if anything."""
        ...


class MemoryStorage:
    """A ledger that ends with the process; safe among threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._receipts: dict[str, dict[str, Receipt]] = {}
        self._spent: dict[str, Charge] = {}
        self._reports: dict[tuple[str, str], str] = {}

    def record(self, receipt: Receipt, cap: Charge | None) -> Receipt | None:
        with self._lock:
            mine = self._receipts.setdefault(receipt.worker, {})
            if receipt.key in mine:
                return mine[receipt.key]
            total = self._spent.get(receipt.worker, NOTHING) + receipt.charge
            if cap is not None and not total.within(cap):
                return None
            self._spent[receipt.worker] = total
            mine[receipt.key] = numbered = replace(receipt, number=len(mine) + 1)
            return numbered

    def spent(self, worker: str) -> Charge:
        with self._lock:
            return self._spent.get(worker, NOTHING)

    def receipts(self, worker: str) -> tuple[Receipt, ...]:
        with self._lock:
            return tuple(self._receipts.get(worker, {}).values())

    def keep(self, worker: str, key: str, report: str) -> str:
        with self._lock:
            return self._reports.setdefault((worker, key), report)

    def kept(self, worker: str, key: str) -> str | None:
        with self._lock:
            return self._reports.get((worker, key))
