"""Figures, each with a caption that states n, unit, ε and method. Needs the extra `plot` (Matplotlib)."""

from crowdveil.plot.audit import audit_figure
from crowdveil.plot.curves import Curve, privacy_utility
from crowdveil.plot.forest import forest
from crowdveil.plot.ledger import ledger_timeline
from crowdveil.plot.style import save

__all__ = ["Curve", "audit_figure", "forest", "ledger_timeline", "privacy_utility", "save"]
