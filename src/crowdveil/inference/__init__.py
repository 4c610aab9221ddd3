"""The methods, by the names the command line uses. A new one is one file and one line here."""

from __future__ import annotations

from typing import Any

from crowdveil.inference.base import IterativeMethod, Method
from crowdveil.inference.methods.auto import Auto
from crowdveil.inference.methods.channel_bp import ChannelBP
from crowdveil.inference.methods.channel_em import ChannelEM
from crowdveil.inference.methods.dawid_skene import DawidSkene
from crowdveil.inference.methods.frequency import Frequency
from crowdveil.inference.methods.glad import Glad
from crowdveil.inference.methods.hierarchical_dawid_skene import HierarchicalDawidSkene
from crowdveil.inference.methods.mace import Mace
from crowdveil.inference.methods.majority import Majority
from crowdveil.inference.methods.mean import Mean
from crowdveil.inference.methods.median import Median
from crowdveil.inference.methods.one_coin import OneCoin
from crowdveil.inference.methods.population_mean import PopulationMean
from crowdveil.inference.methods.private_dawid_skene import PrivateDawidSkene
from crowdveil.inference.methods.weighted_mean import WeightedMean
from crowdveil.inference.methods.weighted_vote import WeightedVote
from crowdveil.registry import create

METHODS: dict[str, type[Method]] = {
    kind.name: kind
    for kind in (
        Majority,
        Mean,
        Median,
        WeightedMean,
        WeightedVote,
        DawidSkene,
        HierarchicalDawidSkene,
        OneCoin,
        Mace,
        Glad,
        PrivateDawidSkene,
        ChannelEM,
        ChannelBP,
        Frequency,
        PopulationMean,
        Auto,
    )
}
"""The built-in methods by name, as the command line and `method` use them."""

__all__ = [
    "METHODS",
    "Auto",
    "ChannelBP",
    "ChannelEM",
    "DawidSkene",
    "Frequency",
    "Glad",
    "HierarchicalDawidSkene",
    "IterativeMethod",
    "Mace",
    "Majority",
    "Mean",
    "Median",
    "Method",
    "OneCoin",
    "PopulationMean",
    "PrivateDawidSkene",
    "WeightedMean",
    "WeightedVote",
    "method",
]


def method(name: str, /, **parameters: Any) -> Method:
    """Create a method by its name.

    `name` is a key of `METHODS`, or of an installed entry point of the group `crowdveil.methods`; `parameters` are the
    settings of its class. Returns the configured method; call its `fit`.

    >>> method("majority")
    Majority()
    """
    return create("method", METHODS, name, parameters)
