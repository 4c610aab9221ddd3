"""Panels side by side: lines, points or bars of several methods, baselines dashed, claimed ε hollow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from crowdveil.errors import InputError
from crowdveil.plot.style import COLOURS, GREY, MARKERS, RC, add_caption, add_frame, add_title

Kind: TypeAlias = Literal["line", "points", "bars"]
_DASHES = ((4, 3), (1, 2), (6, 2, 1, 2), (8, 2))


@dataclass(frozen=True, slots=True)
class Series:
    """One method. `claimed` are the x (ε) that a paper states where `x` is the exact one; `like` names whose colour."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    claimed: Sequence[float] | None = None
    kind: Kind = "line"
    like: str | None = None

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or (self.claimed is not None and len(self.claimed) != len(self.x)):
            raise InputError(f"series {self.name!r} must have one y for each x; got {len(self.y)} for {len(self.x)}")


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes; with `categories` the x are places in that list."""

    title: str
    xlabel: str
    ylabel: str
    series: Sequence[Series]
    baselines: Mapping[str, float] = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False
    categories: Sequence[str] = ()


def panels(drawn: Sequence[Panel], *, caption: str) -> Figure:
    """All panels in one row (two rows from four on), one legend, one caption; a method keeps its colour throughout."""
    if not drawn:
        raise InputError("a figure needs at least one panel; got none")
    columns = len(drawn) if len(drawn) < 4 else (len(drawn) + 1) // 2
    rows = -(-len(drawn) // columns)
    names = list(dict.fromkeys(series.like or series.name for panel in drawn for series in panel.series))
    lines = list(dict.fromkeys(name for panel in drawn for name in panel.baselines))
    with rc_context(RC):
        width = max(7.2, 4.3 * columns)
        figure = Figure(figsize=(width, 3.5 * rows + 1.1), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, panel in zip(grid, drawn, strict=False):
        _draw(axes, panel, names, lines)
    for axes in grid[len(drawn) :]:
        axes.set_visible(False)
    _legend(figure, list(grid[: len(drawn)]), [*(series.name for panel in drawn for series in panel.series), *lines])
    add_caption(figure, caption)
    return figure


def _draw(axes: Axes, panel: Panel, names: list[str], lines: list[str]) -> None:
    add_frame(axes)
    bars = [series for series in panel.series if series.kind == "bars"]
    for series in panel.series:
        _draw_series(axes, series, names.index(series.like or series.name), bars)
    for name, height in panel.baselines.items():
        axes.axhline(height, color=GREY, linewidth=1.3, dashes=_DASHES[lines.index(name) % len(_DASHES)], label=name)
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel)
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")
    elif not _below_zero(panel):
        # A little below 0 where lines run, so that an error of 0 is not hidden by the axis.
        axes.set_ylim(bottom=0.0 if bars else -0.02 * axes.get_ylim()[1])
    if panel.categories:
        axes.set_xticks(range(len(panel.categories)), panel.categories)
    elif panel.log_x:
        _plain_ticks(axes, panel)
    add_title(axes, panel.title)


def _below_zero(panel: Panel) -> bool:
    return any(value < 0 for series in panel.series for value in series.y)


def _draw_series(axes: Axes, series: Series, index: int, bars: list[Series]) -> None:
    colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
    x, y = np.asarray(series.x, dtype=float), np.asarray(series.y, dtype=float)
    if series.kind == "bars":
        width = 0.8 / len(bars)
        axes.bar(
            x + (bars.index(series) - (len(bars) - 1) / 2) * width, y, width * 0.92, color=colour, label=series.name
        )
        return
    line = "none" if series.kind == "points" else "solid" if index < len(COLOURS) else "dashed"
    inside = "white" if series.like else colour
    axes.plot(
        x,
        y,
        color=colour,
        marker=marker,
        markersize=4.5,
        markerfacecolor=inside,
        linewidth=1.6,
        linestyle=line,
        label=series.name,
    )
    if series.claimed is not None:
        claimed = np.asarray(series.claimed, dtype=float)
        other = np.abs(claimed - x) > 1e-3 * x
        ends = np.minimum(claimed, x)[other], np.maximum(claimed, x)[other]
        axes.hlines(y[other], *ends, color=colour, linewidth=0.8, linestyle="dotted")
        hollow: dict[str, Any] = {"marker": marker, "markersize": 5, "markerfacecolor": "white", "linestyle": "none"}
        axes.plot(claimed[other], y[other], color=colour, **hollow)


def _plain_ticks(axes: Axes, panel: Panel) -> None:
    """ε as it is spoken: a few plain numbers instead of powers of ten."""
    stated = {value for series in panel.series for value in series.claimed or series.x if value > 0}
    # Claimed ε are round numbers; exact ones are added only where they go beyond.
    beyond = {value for series in panel.series for value in series.x if value > max(stated)}
    seen = sorted({float(f"{value:.2g}") for value in stated | beyond})
    ticks = [tick for index, tick in enumerate(seen) if index == len(seen) - 1 or seen[index + 1] > 1.2 * tick]
    step = -(-len(ticks) // 7)
    axes.set_xticks(ticks[::step], [f"{tick:g}" for tick in ticks[::step]])
    axes.minorticks_off()


def _legend(figure: Figure, grid: list[Axes], order: list[str]) -> None:
    entries: dict[str, Any] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if len(entries) > 1:
        columns = min(len(entries), 4 if len(grid) == 3 else 3)
        labels = sorted(entries, key=order.index)
        handles = [entries[label] for label in labels]
        figure.legend(
            handles=handles, labels=labels, loc="outside upper left", ncols=columns, frameon=False, fontsize=8.5
        )
