"""The papers, reproduced: one module per paper; a new table or figure is one class and one line here."""

from __future__ import annotations

from crowdveil.papers import (
    beyond,
    li,
    li_additional,
    li_more,
    loki,
    loki_attack,
    loki_selection,
    loki_surveys,
    sun,
    sun_data,
    sun_real,
    sun_theorems,
    wang,
    wang_experts,
)
from crowdveil.papers.reproduction import Claim, Reproduction, Settings

REPRODUCTIONS: dict[str, Reproduction] = {
    each.id: each
    for each in (
        sun_data.Table2(),
        sun_data.Figure1(),
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
        li_additional.Additional(),
        wang.Theorem2(),
        wang.Theorem3(),
        wang_experts.Theorem4(),
        loki.Examples(),
        loki_selection.Figure2a(),
        loki_surveys.Figure2b(),
        loki_attack.Attack(),
        beyond.BeyondChannel(),
    )
}

__all__ = ["REPRODUCTIONS", "Claim", "Reproduction", "Settings"]
