"""Charts as numbers that a template draws in SVG: bars with their intervals, and a needle on a scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WIDTH, LABEL, ROW = 640, 180, 34
_PLOT = WIDTH - LABEL - 70


@dataclass(frozen=True, slots=True)
class Bar:
    """One option: where its bar, its interval and its text stand."""

    label: str
    share: float
    low: float | None
    high: float | None
    y: int
    width: float
    x_low: float | None
    x_high: float | None

    @property
    def middle(self) -> int:
        return self.y + ROW // 2


@dataclass(frozen=True, slots=True)
class Shares:
    """A distribution over options, with the line of knowing nothing."""

    bars: list[Bar]
    height: int
    even_x: float
    even: float
    width: int = WIDTH
    label: int = LABEL


def shares_chart(shares: list[dict[str, Any]]) -> Shares:
    """Bars of the shares; `even` is where all would stand if nothing were known."""
    bars = [
        Bar(
            each["option"],
            each["share"],
            each["low"],
            each["high"],
            place * ROW + 8,
            _PLOT * _inside(each["share"]),
            None if each["low"] is None else LABEL + _PLOT * _inside(each["low"]),
            None if each["high"] is None else LABEL + _PLOT * _inside(each["high"]),
        )
        for place, each in enumerate(shares)
    ]
    even = 1 / max(len(shares), 1)
    return Shares(bars, len(shares) * ROW + 30, LABEL + _PLOT * even, even)


@dataclass(frozen=True, slots=True)
class Needle:
    """A number with its interval on its scale; the middle of the scale is what knowing nothing would say."""

    low_label: str
    high_label: str
    x: float
    x_low: float
    x_high: float
    middle_x: float
    left: int = 40
    right: int = WIDTH - 40
    width: int = WIDTH
    height: int = 84


def needle_chart(value: float, low: float | None, high: float | None, scale: dict[str, str]) -> Needle:
    """Where the estimate stands between the ends of the scale."""
    bottom, top = float(scale["low"]), float(scale["high"])

    def at(number: float) -> float:
        return 40 + (WIDTH - 80) * _inside((number - bottom) / (top - bottom))

    ends = (value if low is None else low, value if high is None else high)
    return Needle(scale["low"], scale["high"], at(value), at(ends[0]), at(ends[1]), at((bottom + top) / 2))


def _inside(share: float) -> float:
    return min(max(share, 0.0), 1.0)
