"""One line of an audit: what was claimed, what was found, and the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from crowdveil.exact import json_number
from crowdveil.guarantee import Unit

Verdict: TypeAlias = Literal["holds", "exceeds", "unknown"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`exact` is a proof in both directions; `lower_bound` can only refute: a claim it leaves standing is unknown."""

    mechanism: str
    unit: Unit
    claimed: float | None
    exact: float | None = None
    lower_bound: float | None = None
    verdict: Verdict = "unknown"
    research_only: bool = False
    checks: dict[str, Verdict] = field(default_factory=dict)
    note: str = ""

    def to_json(self) -> dict[str, object]:
        return {
            "mechanism": self.mechanism,
            "unit": self.unit,
            "claimed": _number(self.claimed),
            "exact": _number(self.exact),
            "lower_bound": _number(self.lower_bound),
            "verdict": self.verdict,
            "research_only": self.research_only,
            "checks": dict(self.checks),
            "note": self.note,
        }


def refute(claimed: float | None, lower_bound: float) -> Verdict:
    """What a lower bound can say about a claim."""
    return "exceeds" if claimed is not None and lower_bound > claimed else "unknown"


def _number(value: float | None) -> float | str | None:
    return None if value is None or math.isnan(value) else json_number(value)
