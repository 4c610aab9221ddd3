"""A worker's ledger as a timeline: what each release used up of both budgets, and how far the cap is."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from crowdveil.accounting import Ledger
from crowdveil.accounting.nano import amount_of
from crowdveil.errors import InputError
from crowdveil.plot.style import COLOURS, GREY, add_caption, add_title, new_figure

_MOST_NAMES = 24


def ledger_timeline(ledger: Ledger, worker: str) -> Figure:
    """Cumulative Σε and Σρ as shares of their caps; a release is accepted while either stays within."""
    receipts = ledger.receipts(worker)
    if not receipts:
        raise InputError(f"worker {worker!r} has no release to show", fix="check the worker's id")
    cap = ledger.budget.cap
    epsilon = np.cumsum([amount_of(receipt.charge.epsilon) for receipt in receipts]) / amount_of(cap.epsilon)
    rho = np.cumsum([amount_of(receipt.charge.rho) for receipt in receipts])
    figure, axes = new_figure()
    steps = np.arange(len(receipts) + 1)
    edges = np.append(steps, len(receipts) + 0.5)
    axes.step(edges, [0, *epsilon, epsilon[-1]], where="post", color=COLOURS[0], linewidth=2, label="Σε of ε max")
    if cap.rho > 0:
        shares = rho / amount_of(cap.rho)
        axes.step(
            edges,
            [0, *shares, shares[-1]],
            where="post",
            color=COLOURS[1],
            linewidth=2,
            dashes=(4, 1.5),
            label="Σρ of ρ max",
        )
    axes.axhline(1, color=GREY, linewidth=1.2, dashes=(1, 2), label="the cap")
    for index, receipt in enumerate(receipts, start=1):
        if any(line.kind == "unprotected" for line in receipt.lines):
            axes.plot(index, 0, marker="X", color="black", markersize=9, clip_on=False, linestyle="none")
    axes.set(ylabel="share of the budget used", xlabel="release", ylim=(0, None), xlim=(0, len(receipts) + 0.5))
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    names = [receipt.lines[0].name for receipt in receipts]
    shown = steps[1:] if len(names) <= _MOST_NAMES else steps[1 :: len(names) // _MOST_NAMES + 1]
    rotation = 0 if len(names) <= 6 else 60
    axes.set_xticks(
        shown, [names[step - 1] for step in shown], rotation=rotation, ha="right" if rotation else "center", fontsize=8
    )
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    add_title(axes, f"What worker {worker} has spent")
    add_caption(figure, _caption(ledger, worker, len(receipts)))
    return figure


def _caption(ledger: Ledger, worker: str, n_releases: int) -> str:
    budget, loss = ledger.budget, ledger.loss(worker)
    words = f"n = {n_releases} releases; budget ε {budget.epsilon:g}, δ {budget.delta:g}; {loss}."
    return words + " A release is accepted while Σε or Σρ stays within its cap; ✕ marks unprotected answers."
