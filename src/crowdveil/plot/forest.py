"""Estimates with their intervals, one line per question, sorted, with the floor said in the caption."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from crowdveil.errors import InputError
from crowdveil.estimate import Estimate
from crowdveil.plot.style import COLOURS, GREY, add_caption, add_title, new_figure


def forest(
    estimate: Estimate, *, epsilon: float, unit: str, n_reports: int, truth: NDArray[Any] | None = None, limit: int = 40
) -> Figure:
    """The values and their intervals (for choices: the confidence in the value); `truth` is marked where known.

    Beyond `limit` questions an even selection over the sorted values is shown, and the caption says so.
    """
    answered = np.flatnonzero(estimate.answered)
    if not len(answered):
        raise InputError("no question has an estimate, so there is nothing to draw")
    centre = estimate.confidence if estimate.categorical else estimate.value
    order = answered[np.argsort(np.asarray(centre)[answered], kind="stable")]
    shown = order if len(order) <= limit else order[np.linspace(0, len(order) - 1, limit).round().astype(int)]
    figure, axes = new_figure(height=1.6 + 0.2 * len(shown))
    _draw(axes, estimate, centre, shown, truth)
    axes.set_yticks(range(len(shown)), _labels(estimate, shown), fontsize=8)
    axes.grid(axis="x", color="#E6E6E6")
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set(ylim=(-0.7, len(shown) - 0.3), xlabel="confidence in the value" if estimate.categorical else "estimate")
    add_title(axes, "Estimates and their intervals")
    add_caption(figure, _caption(estimate, len(shown), len(order), epsilon, unit, n_reports))
    return figure


def _draw(
    axes: Axes, estimate: Estimate, centre: NDArray[Any], shown: NDArray[Any], truth: NDArray[Any] | None
) -> None:
    places = np.arange(len(shown))
    low, high = estimate.low[shown], estimate.high[shown]
    axes.hlines(places, low, high, color=COLOURS[0], linewidth=1.6, alpha=0.7, label=f"{estimate.level:.0%} interval")
    axes.plot(np.asarray(centre)[shown], places, "o", color=COLOURS[0], markersize=4.5, label="estimate")
    if truth is not None and not estimate.categorical:
        axes.plot(
            np.asarray(truth)[shown], places, "|", color=COLOURS[1], markersize=9, markeredgewidth=2, label="truth"
        )
    if estimate.floor is not None and not estimate.floor.informative:
        axes.set_facecolor("#F5F5F5")
        axes.text(0.99, 0.02, "this is the prior", transform=axes.transAxes, ha="right", color=GREY)
    axes.legend(frameon=False, fontsize=9, loc="lower right")


def _labels(estimate: Estimate, shown: NDArray[Any]) -> list[str]:
    names = [str(estimate.questions[each]) for each in shown]
    if not estimate.categorical:
        return names
    values = estimate.values()
    return [f"{name}: {values[each]}" for name, each in zip(names, shown, strict=True)]


def _caption(estimate: Estimate, n_shown: int, n_all: int, epsilon: float, unit: str, n_reports: int) -> str:
    words = (
        f"n = {n_reports} reports on {len(estimate)} questions; ε {epsilon:g} per {unit}; method {estimate.method}; "
    )
    words += f"{estimate.level:.0%} intervals."
    words += f" {n_shown} of {n_all} questions shown, evenly chosen." if n_shown < n_all else ""
    return words + (f" {estimate.floor.sentence}" if estimate.floor is not None else "")
