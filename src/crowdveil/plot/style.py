"""One look for every figure: colours that colour-blind people tell apart, direct labels, a caption that says it all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Okabe & Ito (2008), in an order in which neighbours differ in lightness as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INK, GREY, PALE = "#222222", "#767676", "#E6E6E6"

RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "crowdveil",
}


def new_figure(width: float = 7.2, height: float = 4.4) -> tuple[Figure, Axes]:
    """An empty figure of its own: nothing here touches pyplot's global state."""
    with rc_context(RC):
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
    add_frame(axes)
    return figure, axes


def add_frame(axes: Axes) -> None:
    """Two axes and pale lines behind what is drawn."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="y", color=PALE, linewidth=0.8)
    axes.set_axisbelow(True)


def add_title(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=10)


def add_caption(figure: Figure, caption: str) -> None:
    """The sentence under the figure; it is part of the figure so that it travels with it."""
    figure.supxlabel(caption, x=0.01, ha="left", fontsize=8.5, color=GREY, wrap=True)


def save(figure: Figure, path: str | Path) -> tuple[Path, Path]:
    """Write PATH.svg and PATH.png (any ending of `path` is replaced); the same figure gives the same bytes."""
    stem = Path(path).with_suffix("")
    svg, png = stem.with_suffix(".svg"), stem.with_suffix(".png")
    with rc_context(RC):
        figure.savefig(svg, metadata={"Date": None, "Creator": "crowdveil"})
        figure.savefig(png, dpi=160, metadata={"Software": "crowdveil"})
    return svg, png
