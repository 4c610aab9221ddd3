"""The audit as a figure: what each mechanism claims, what was found, and the verdict in words and shape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdveil.errors import InputError
from crowdveil.plot.style import COLOURS, GREY, add_caption, add_title, new_figure

_VERDICTS = {"holds": (COLOURS[2], "o"), "exceeds": (COLOURS[1], "X"), "unknown": (GREY, "D")}


def audit_figure(rows: Sequence[Mapping[str, Any]], *, caption: str = "") -> Figure:
    """Rows as `crowdveil audit --json` prints them: mechanism, unit, claimed, exact, lower_bound, verdict."""
    if not rows:
        raise InputError("an audit figure needs at least one row; got none")
    figure, axes = new_figure(height=1.6 + 0.34 * len(rows))
    right = 1.12 * max([1.0, *(value for row in rows for value in _numbers(row))])
    for row_index, row in enumerate(reversed(rows)):
        _draw_row(axes, row_index, row, right)
    axes.set_yticks(range(len(rows)), [_name(row) for row in reversed(rows)])
    axes.set(xlabel="ε", xlim=(0, right * 1.25), ylim=(-0.7, len(rows) - 0.3))
    axes.grid(axis="x", color="#E6E6E6")
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.legend(handles=_legend(axes), frameon=False, fontsize=9, ncols=4, loc="lower left", bbox_to_anchor=(0, 1.0))
    add_title(axes, "Claimed and found\n")
    add_caption(figure, caption or _caption(rows))
    return figure


def _draw_row(axes: Axes, row_index: int, row: Mapping[str, Any], right: float) -> None:
    colour, marker = _VERDICTS.get(str(row["verdict"]), _VERDICTS["unknown"])
    claimed, measured = _number(row.get("claimed")), _measured_epsilon(row)
    if math.isfinite(claimed):
        axes.plot([claimed, claimed], [row_index - 0.32, row_index + 0.32], color="black", linewidth=2.2)
    if math.isfinite(measured):
        axes.plot([0, measured], [row_index, row_index], color=colour, linewidth=1.4, alpha=0.6)
        axes.plot(measured, row_index, marker=marker, color=colour, markersize=7)
    text = f"{row['verdict']}" + (" (ε = ∞)" if math.isinf(measured) else "")
    axes.text(
        right * 1.24,
        row_index,
        text,
        va="center",
        ha="right",
        fontsize=9,
        color=colour if colour != GREY else "#555555",
    )


def _legend(axes: Axes) -> list[Any]:
    handles = axes.plot([], [], color="black", linewidth=2.2, label="claimed ε")
    for verdict, (colour, marker) in _VERDICTS.items():
        handles += axes.plot([], [], marker=marker, color=colour, linestyle="none", label=verdict)
    return handles


def _measured_epsilon(row: Mapping[str, Any]) -> float:
    """The exact ε where there is one, else the lower bound."""
    exact = row.get("exact")
    return _number(row.get("lower_bound") if exact is None else exact)


def _numbers(row: Mapping[str, Any]) -> list[float]:
    return [value for value in (_number(row.get("claimed")), _measured_epsilon(row)) if math.isfinite(value)]


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['mechanism']} ({row['unit']})" + (" †" if row.get("research_only") else "")


def _caption(rows: Sequence[Mapping[str, Any]]) -> str:
    exact = sum(row.get("exact") is not None for row in rows)
    units = ", ".join(sorted({str(row["unit"]) for row in rows}))
    words = f"n = {len(rows)} mechanisms; ε per {units}; method: {exact} exact from the integer table, "
    words += f"{len(rows) - exact} by a lower bound from samples."
    return words + (" † research only, never deployed." if any(row.get("research_only") for row in rows) else "")
