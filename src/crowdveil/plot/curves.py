"""Privacy against error: what each method gives at each ε, beside the trivial baselines and the floor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdveil.errors import InputError
from crowdveil.plot.style import COLOURS, GREY, MARKERS, add_caption, add_title, new_figure


@dataclass(frozen=True, slots=True)
class Curve:
    """The error of one mechanism and method at several ε; `low` and `high` bound it where given."""

    name: str
    epsilons: Sequence[float]
    errors: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None

    def __post_init__(self) -> None:
        columns = [column for column in (self.errors, self.low, self.high) if column is not None]
        if any(len(column) != len(self.epsilons) for column in columns):
            raise InputError(f"curve {self.name!r} must have one error per ε; got {[len(c) for c in columns]}")


def privacy_utility(
    curves: Sequence[Curve],
    *,
    measure: str,
    unit: str,
    n_workers: int,
    n_questions: int,
    baselines: Mapping[str, float] | None = None,
    floor: Curve | None = None,
    title: str = "What privacy costs",
    note: str = "",
) -> Figure:
    """Error over ε (logarithmic), baselines dashed, and the region below the floor shaded.

    A floor on unbiased estimates may be passed by an estimate that leans on the prior: name it for what it is.
    """
    if not curves:
        raise InputError("a figure needs at least one curve; got none")
    figure, axes = new_figure()
    for index, curve in enumerate(curves):
        _draw_curve(axes, curve, COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)])
    lowest, highest = (pick([pick(curve.epsilons) for curve in curves]) for pick in (min, max))
    _draw_baselines(axes, baselines or {})
    top = max(max(curve.errors) for curve in curves)
    top = 1.12 * max([top, *(baselines or {}).values()])
    if floor is not None:
        _draw_floor(axes, floor, top)
    axes.set(xscale="log", xlabel=f"ε per {unit} (smaller is more private)", ylabel=measure, ylim=(0, top))
    ticks = sorted({float(epsilon) for curve in curves for epsilon in curve.epsilons})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(lowest / 1.15, highest * 1.15)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5))
    add_title(axes, title)
    names = " · ".join(curve.name for curve in curves)
    caption = f"n = {n_workers} workers × {n_questions} questions; ε per {unit}; methods: {names}."
    add_caption(figure, f"{caption} {note}".strip())
    return figure


def _draw_curve(axes: Axes, curve: Curve, colour: str, marker: str) -> None:
    axes.plot(curve.epsilons, curve.errors, color=colour, marker=marker, markersize=5, linewidth=1.8, label=curve.name)
    if curve.low is not None and curve.high is not None:
        axes.fill_between(curve.epsilons, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)


def _draw_baselines(axes: Axes, baselines: Mapping[str, float]) -> None:
    for index, (name, value) in enumerate(baselines.items()):
        dashes = [(4, 3), (1, 2), (6, 2, 1, 2)][index % 3]
        axes.axhline(value, color=GREY, linewidth=1.2, dashes=dashes, label=name)


def _draw_floor(axes: Axes, floor: Curve, top: float) -> None:
    heights = np.minimum(np.asarray(floor.errors, dtype=float), top)
    axes.fill_between(
        floor.epsilons, 0, heights, color="#BBBBBB", alpha=0.45, linewidth=0, label=floor.name, hatch="//"
    )
