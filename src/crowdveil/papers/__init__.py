"""The papers, reproduced: one module per paper; a new table or figure is one class and one line here."""

from __future__ import annotations

from crowdveil.papers import beyond
from crowdveil.papers.core.reproduction import Claim, Reproduction, Settings
from crowdveil.papers.li import additional as li_additional
from crowdveil.papers.li import tables as li
from crowdveil.papers.li import weights as li_more
from crowdveil.papers.loki import levels as loki
from crowdveil.papers.loki import linkage_attack as loki_attack
from crowdveil.papers.loki import selection as loki_selection
from crowdveil.papers.loki import surveys as loki_surveys
from crowdveil.papers.sun import datasets as sun_data
from crowdveil.papers.sun import real_crowds as sun_real
from crowdveil.papers.sun import synthetic as sun
from crowdveil.papers.sun import theorems as sun_theorems
from crowdveil.papers.wang import experts as wang_experts
from crowdveil.papers.wang import theorems as wang

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
"""The reproduced tables, figures and theorems by the id that `crowdveil reproduce` takes."""

__all__ = ["REPRODUCTIONS", "Claim", "Reproduction", "Settings"]
