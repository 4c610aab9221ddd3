"""What a release promises, in numbers that name their unit and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from crowdveil.errors import InputError
from crowdveil.exact import json_number

Unit: TypeAlias = Literal["value", "cell", "vector"]

# From here on doubles are whole numbers.
_WHOLE = 2.0**53

_NEIGHBOURS = {
    "value": "the value of one answered question",
    "cell": "one question, answered or not",
    "vector": "all answers of one worker together",
}


@dataclass(frozen=True, slots=True)
class Guarantee:
    """Differential privacy of one release: the unit, ε rounded up, δ and ρ (zero-concentrated).

    `note` says under which circumstances the numbers hold when they do not hold always.
    """

    unit: Unit
    epsilon: float
    rho: float
    delta: float = 0.0
    protects_participation: bool = False
    research_only: bool = False
    note: str = ""

    @property
    def protected(self) -> bool:
        """False for the identity channel: there is no guarantee to speak of."""
        return math.isfinite(self.epsilon) or self.delta > 0

    def to_json(self) -> dict[str, object]:
        return {
            "unit": self.unit,
            "epsilon": json_number(self.epsilon),
            "delta": self.delta,
            "rho": json_number(self.rho),
            "protects_participation": self.protects_participation,
        }

    def __str__(self) -> str:
        if not self.protected:
            return "not protected: the report is the answer (ε = ∞)"
        words = f"ε ≤ {round_up(self.epsilon)} per {self.unit} ({_NEIGHBOURS[self.unit]})"
        words += f", δ = {self.delta:g}" if self.delta else ""
        words += "" if self.protects_participation else "; whether a question was answered is visible"
        words += f"; {self.note}" if self.note else ""
        return words + ("; research only, never deployed" if self.research_only else "")


def round_up(epsilon: float, digits: int = 4) -> str:
    """ε as text, rounded up: a printed number never understates the loss."""
    if math.isinf(epsilon):
        return "∞"
    if epsilon >= _WHOLE:
        return f"{epsilon:.0f}"
    # The dust of a sum such as 0.1 + 0.2 is no loss, but a loss is never shown as none.
    steps = max(math.ceil(epsilon * 10**digits - 1e-12), int(epsilon > 0))
    return f"{steps / 10**digits:.{digits}f}".rstrip("0").rstrip(".")


def positive_epsilon(epsilon: float) -> float:
    """The one check of a requested ε."""
    try:
        number = float(epsilon) if isinstance(epsilon, int) else epsilon
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number <= 0:
        raise InputError(
            f"epsilon must be a positive finite number; got {number}",
            fix="choose for example 1, or mechanism none for no privacy",
        )
    return float(number)
