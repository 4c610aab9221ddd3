"""Charts as numbers that a template draws in SVG: bars with their intervals, and a needle on a scale.

The drawing is as wide as a phone, so that its letters are read there at their own size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

WIDTH, MARGIN, ROW = 360, 6, 46
_PLOT = WIDTH - 2 * MARGIN
_LONGEST = 34


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
    def short(self) -> str:
        """The label cut to what fits; the table has all of it."""
        return self.label if len(self.label) <= _LONGEST else self.label[: _LONGEST - 1] + "…"

    @property
    def text_y(self) -> int:
        return self.y + 16

    @property
    def bar_y(self) -> int:
        return self.y + 22

    @property
    def band_width(self) -> float:
        """How wide the interval is drawn where there is no estimate to draw."""
        return (self.x_high or 0.0) - (self.x_low or 0.0)

    @property
    def whisker(self) -> str:
        """The interval as a path: a line with a cap at each end."""
        middle = self.y + 29
        return (
            f"M{self.x_low:.1f} {middle - 5}v10M{self.x_high:.1f} {middle - 5}v10M{self.x_low:.1f} {middle}"
            f"H{self.x_high:.1f}"
        )


@dataclass(frozen=True, slots=True)
class Shares:
    """A distribution over options, with the line of a guess without asking."""

    bars: list[Bar]
    height: int
    even_x: float
    even: float
    width: int = WIDTH
    left: int = MARGIN
    right: int = WIDTH - MARGIN
    plot: int = _PLOT

    @property
    def bounded(self) -> bool:
        """Whether the shares have intervals; probabilities of the right answer have none."""
        return all(bar.low is not None for bar in self.bars)

    @property
    def floor_y(self) -> int:
        return self.height - 18


def shares_chart(shares: list[dict[str, Any]], even: float, label: Callable[[str], str] = str) -> Shares:
    """Bars of the shares; `even` is what a guess without asking would say."""
    bars = [
        Bar(
            label(each["option"]),
            each["share"],
            each["low"],
            each["high"],
            place * ROW,
            _PLOT * _inside(each["share"]),
            None if each["low"] is None else _at(each["low"]),
            None if each["high"] is None else _at(each["high"]),
        )
        for place, each in enumerate(shares)
    ]
    return Shares(bars, len(shares) * ROW + 24, _at(even), even)


@dataclass(frozen=True, slots=True)
class Needle:
    """A number with its interval on its scale; the middle of the scale is what a guess would say."""

    low_label: str
    high_label: str
    x: float
    x_low: float
    x_high: float
    middle_x: float
    middle: str
    left: int = 20
    right: int = WIDTH - 20
    width: int = WIDTH
    height: int = 64

    @property
    def band_width(self) -> float:
        return self.x_high - self.x_low


def needle_chart(value: float, low: float | None, high: float | None, scale: dict[str, str]) -> Needle:
    """Where the estimate stands between the ends of the scale."""
    bottom, top = float(scale["low"]), float(scale["high"])

    def at(number: float) -> float:
        return 20 + (WIDTH - 40) * _inside((number - bottom) / (top - bottom))

    ends = (value if low is None else low, value if high is None else high)
    middle = (bottom + top) / 2
    return Needle(scale["low"], scale["high"], at(value), at(ends[0]), at(ends[1]), at(middle), f"{middle:.2f}")


def _at(share: float) -> float:
    return MARGIN + _PLOT * _inside(share)


def _inside(share: float) -> float:
    return min(max(share, 0.0), 1.0)
