"""What a theorem calculator returns: the number, whether the theorem applies to it, and where the print is wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crowdveil.errors import InputError
from crowdveil.exact import json_number


@dataclass(frozen=True, slots=True)
class Premise:
    """One condition of a theorem and whether the numbers given satisfy it."""

    statement: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Bound:
    """`value` is what the formula gives; it means something only where every premise `holds`.

    `counterexample` says where the printed claim fails although its printed premises hold; empty if none is known.
    """

    theorem: str
    value: float
    premises: tuple[Premise, ...]
    counterexample: str = ""

    @property
    def applies(self) -> bool:
        return all(premise.holds for premise in self.premises)

    def to_json(self) -> dict[str, object]:
        return {
            "theorem": self.theorem,
            "value": json_number(self.value),
            "applies": self.applies,
            "premises": [{"statement": premise.statement, "holds": premise.holds} for premise in self.premises],
            "counterexample": self.counterexample,
        }

    def __str__(self) -> str:
        failed = [premise.statement for premise in self.premises if not premise.holds]
        words = f"{self.theorem}: {self.value:.4g}"
        words += f"; does not apply: {'; '.join(failed)}" if failed else "; its premises hold"
        return words + (f"; but {self.counterexample}" if self.counterexample else "")


def check_probability(name: str, value: float, *, open_: bool = False) -> float:
    """A probability; with `open_` strictly between 0 and 1."""
    inside = 0 < value < 1 if open_ else 0 <= value <= 1
    if not inside:
        raise InputError(f"{name} must be {'strictly ' if open_ else ''}between 0 and 1; got {value}")
    return float(value)


def check_positive(name: str, value: float) -> float:
    if not math.isfinite(value) or value <= 0:
        raise InputError(f"{name} must be a positive number; got {value}")
    return float(value)
