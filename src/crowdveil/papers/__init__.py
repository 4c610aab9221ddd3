"""The papers, reproduced: one module per paper; a new table or figure is one class and one line here."""

from __future__ import annotations

from crowdveil.papers import li, li_more, loki, sun, sun_real, sun_theorems
from crowdveil.papers.reproduction import Claim, Reproduction, Settings

REPRODUCTIONS: dict[str, Reproduction] = {
    each.id: each
    for each in (
        sun_real.Table2(),
        sun_real.Figure1(),
        sun.Figure2(),
        sun.Figure3(),
        sun.Figure4(),
        sun_real.Figure5(),
        sun_theorems.Theorems(),
        li.Table2(),
        li.Table3(),
        li_more.Figure1(),
        li_more.Figure2(),
        li.Figure3(),
        li_more.Additional(),
        loki.Examples(),
    )
}

__all__ = ["REPRODUCTIONS", "Claim", "Reproduction", "Settings"]
