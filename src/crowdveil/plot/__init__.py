"""Figures, each with a caption that states n, unit, ε and method. Needs the extra `plot` (Matplotlib)."""

from crowdveil.plot.audit import audit_figure
from crowdveil.plot.curves import Curve, privacy_utility
from crowdveil.plot.forest import forest
from crowdveil.plot.ledger import ledger_timeline
from crowdveil.plot.panels import Panel, Series, panels
from crowdveil.plot.style import save

__all__ = [
    "Curve",
    "Panel",
    "Series",
    "audit_figure",
    "forest",
    "ledger_timeline",
    "panels",
    "privacy_utility",
    "save",
]
