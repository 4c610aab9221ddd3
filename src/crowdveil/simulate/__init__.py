"""Crowds whose truth is known: the papers' own, and any other that a few numbers describe."""

from crowdveil.simulate.choices import ChoiceCrowd
from crowdveil.simulate.crowd import Crowd
from crowdveil.simulate.presets import PRESETS, preset
from crowdveil.simulate.scales import ScaleCrowd

__all__ = ["PRESETS", "ChoiceCrowd", "Crowd", "ScaleCrowd", "preset"]
