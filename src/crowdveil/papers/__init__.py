"""The papers, reproduced: one module per paper; a new table or figure is one class and one line here."""

from __future__ import annotations

from crowdveil.papers.loki import Examples
from crowdveil.papers.reproduction import Claim, Reproduction, Settings
from crowdveil.papers.sun import Figure2, Figure3, Figure4

REPRODUCTIONS: dict[str, Reproduction] = {each.id: each for each in (Figure2(), Figure3(), Figure4(), Examples())}

__all__ = ["REPRODUCTIONS", "Claim", "Reproduction", "Settings"]
