"""A worker's ledger as a timeline: what each release used up of both budgets, and how far the cap is."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdveil.accounting import Ledger
from crowdveil.accounting.nano import from_nano
from crowdveil.errors import InputError
from crowdveil.plot.style import COLOURS, GREY, add_caption, add_title, new_figure

_MOST_NAMES = 24


def ledger_timeline(ledger: Ledger, worker: str) -> Figure:
    """Cumulative Σε and Σρ as shares of their caps; a release is accepted while either stays within."""
    receipts = ledger.receipts(worker)
    if not receipts:
        raise InputError(f"worker {worker!r} has no release to show", fix="check the worker's id")
    figure, axes = new_figure()
    cap = ledger.budget.cap
    _draw_share(axes, [receipt.charge.epsilon for receipt in receipts], cap.epsilon, "Σε of ε max", color=COLOURS[0])
    if cap.rho > 0:
        rho = [receipt.charge.rho for receipt in receipts]
        _draw_share(axes, rho, cap.rho, "Σρ of ρ max", color=COLOURS[1], dashes=(4, 1.5))
    axes.axhline(1, color=GREY, linewidth=1.2, dashes=(1, 2), label="the cap")
    for index, receipt in enumerate(receipts, start=1):
        if any(line.kind == "unprotected" for line in receipt.lines):
            axes.plot(index, 0, marker="X", color="black", markersize=9, clip_on=False, linestyle="none")
    axes.set(ylabel="share of the budget used", xlabel="release", ylim=(0, None), xlim=(0, len(receipts) + 0.5))
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    _name_releases(axes, [receipt.lines[0].name for receipt in receipts])
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    add_title(axes, f"What worker {worker} has spent")
    add_caption(figure, _caption(ledger, worker, len(receipts)))
    return figure


def _draw_share(axes: Axes, charges: list[int], cap: int, label: str, **line: Any) -> None:
    """The sum after each release as a share of its cap."""
    shares = np.cumsum([from_nano(charge) for charge in charges]) / from_nano(cap)
    edges = np.append(np.arange(len(charges) + 1), len(charges) + 0.5)
    axes.step(edges, [0, *shares, shares[-1]], where="post", linewidth=2, label=label, **line)


def _name_releases(axes: Axes, names: list[str]) -> None:
    """Every name, or evenly some of them where they would not fit."""
    shown = range(1, len(names) + 1, 1 if len(names) <= _MOST_NAMES else len(names) // _MOST_NAMES + 1)
    slanted: dict[str, Any] = {"rotation": 60, "ha": "right"} if len(names) > 6 else {"rotation": 0, "ha": "center"}
    axes.set_xticks(list(shown), [names[step - 1] for step in shown], fontsize=8, **slanted)


def _caption(ledger: Ledger, worker: str, n_releases: int) -> str:
    budget, loss = ledger.budget, ledger.loss(worker)
    words = f"n = {n_releases} releases; budget ε {budget.epsilon:g}, δ {budget.delta:g}; {loss}."
    return words + " A release is accepted while Σε or Σρ stays within its cap; ✕ marks unprotected answers."
