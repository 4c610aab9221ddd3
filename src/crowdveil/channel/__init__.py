"""Channels: the public table P(report | answer), its wire form, its divergences, and the noise of research."""

from __future__ import annotations

from crowdveil.channel.additive_noise import NoiseRecord as NoiseRecord
from crowdveil.channel.joint import JointChannel as JointChannel
from crowdveil.channel.table import MAX_OUTPUTS as MAX_OUTPUTS
from crowdveil.channel.table import MAX_TABLE_INPUTS as MAX_TABLE_INPUTS
from crowdveil.channel.table import Channel as Channel
from crowdveil.channel.table import Output as Output
from crowdveil.channel.table import identity as identity
