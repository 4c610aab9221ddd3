"""What a release promises, in numbers that name their unit and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import ROUND_FLOOR, Decimal
from typing import Annotated, Any, Literal, TypeAlias

from crowdveil.exact import decimal_text, json_number
from crowdveil.validation import Rule, checked

Unit: TypeAlias = Literal["value", "cell", "vector"]
POSITIVE = Rule(
    "a positive finite number",
    lambda epsilon: 0 < epsilon < math.inf,
    fix="choose for example 1, or mechanism none for no privacy",
)
Epsilon: TypeAlias = Annotated[float, POSITIVE]

# From here on doubles are whole numbers.
_WHOLE = 2.0**53

_NEIGHBOURS = {
    "value": "the value of one answered question",
    "cell": "one question, answered or not",
    "vector": "all answers of one worker together",
}


@dataclass(frozen=True, slots=True, repr=False)
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

    def __repr__(self) -> str:
        """The fields that say something: those at their default are left out."""
        said = [each for each in fields(self) if getattr(self, each.name) != each.default]
        return f"Guarantee({', '.join(f'{each.name}={getattr(self, each.name)!r}' for each in said)})"

    def to_json(self) -> dict[str, object]:
        return {
            "unit": self.unit,
            "epsilon": json_number(self.epsilon),
            "delta": self.delta,
            "rho": json_number(self.rho),
            "protects_participation": self.protects_participation,
        }

    def to_record(self) -> dict[str, object]:
        """For a record that is hashed: numbers as texts, because hashes must agree everywhere."""
        return {
            "unit": self.unit,
            "epsilon": repr(self.epsilon),
            "rho": repr(self.rho),
            "delta": repr(self.delta),
            "protects_participation": self.protects_participation,
            "note": self.note,
        }

    @classmethod
    def from_record(cls, fields: Mapping[str, Any]) -> Guarantee:
        """The promise of a research mechanism, which alone is written into records."""
        epsilon, rho, delta = (float(fields[name]) for name in ("epsilon", "rho", "delta"))
        protects, note = fields["protects_participation"], fields["note"]
        return cls(fields["unit"], epsilon, rho, delta, protects, research_only=True, note=note)

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


def round_down(amount: float, digits: int = 4) -> str:
    """What is left or proven as text, rounded down: a printed number never promises, or accuses, too much.

    >>> round_down(1234.56789), round_down(0.3)
    ('1234.5678', '0.3')
    """
    if math.isinf(amount):
        return "∞"
    if amount >= _WHOLE:
        return f"{amount:.0f}"
    # As it is spelled: binary dust would take a step off 0.3.
    return decimal_text(Decimal(repr(float(amount))).quantize(Decimal(1).scaleb(-digits), ROUND_FLOOR))


def positive_epsilon(epsilon: float) -> float:
    """The one check of a requested ε, for one that is not the setting of anything."""
    return float(checked("epsilon", epsilon, Epsilon))
