"""Channels: the public table P(report | answer), its wire form, its divergences, and the noise of research."""

from __future__ import annotations

from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.channel.joint import JointChannel
from crowdveil.channel.table import MAX_OUTPUTS, MAX_TABLE_INPUTS, Channel, Output, identity

__all__ = ["MAX_OUTPUTS", "MAX_TABLE_INPUTS", "Channel", "JointChannel", "NoiseRecord", "Output", "identity"]
