"""What a theorem calculator returns: the number, whether the theorem applies to it, and where the print is wrong."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal

from crowdveil.errors import InputError
from crowdveil.exact import json_number


@dataclass(frozen=True, slots=True)
class Premise:
    """One condition of a theorem and whether the numbers given satisfy it.

    `source` is "paper" for a condition that the paper states and "crowdveil" for one that its proof needs and the
    paper does not state.
    """

    statement: str
    holds: bool
    source: Literal["paper", "crowdveil"] = "paper"


@dataclass(frozen=True, slots=True)
class Bound:
    """The result of a theorem calculator.

    `value` is what the formula gives; it means something only where every premise `holds`.

    `value` is always the paper's formula. `corrected` is what follows from the paper's own previous step where a step
    of the derivation is wrong (None: the formula follows). `counterexample` says where the printed claim, or a step of
    its proof, fails although its printed premises hold; empty if none is known.
    """

    theorem: str
    value: float
    premises: tuple[Premise, ...]
    counterexample: str = ""
    corrected: float | None = None

    @property
    def applies(self) -> bool:
        """Whether all premises hold, those that only the proof needs included."""
        return all(premise.holds for premise in self.premises)

    @property
    def applies_as_printed(self) -> bool:
        """Whether the premises that the paper states hold."""
        return all(premise.holds for premise in self.premises if premise.source == "paper")

    def to_json(self) -> dict[str, object]:
        return {
            "theorem": self.theorem,
            "value": json_number(self.value),
            "applies": self.applies,
            "applies_as_printed": self.applies_as_printed,
            "premises": [asdict(premise) for premise in self.premises],
            "counterexample": self.counterexample,
            "corrected": None if self.corrected is None else json_number(self.corrected),
        }

    def __str__(self) -> str:
        failed = [
            premise.statement + (" (our condition: the proof needs it)" if premise.source == "crowdveil" else "")
            for premise in self.premises
            if not premise.holds
        ]
        words = f"{self.theorem}: {self.value:.4g}"
        words += "" if self.corrected is None else f" as printed, {self.corrected:.4g} corrected"
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
