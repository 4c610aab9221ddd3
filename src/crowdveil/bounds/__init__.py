"""Theorem calculators of the papers, each with its premises checked, and what no mechanism can pass."""

from crowdveil.bounds.theorem import Bound, Premise

__all__ = ["Bound", "Premise"]
