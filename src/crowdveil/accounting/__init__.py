"""What was released, what it costs, and the ledger that refuses to overspend.

Names are loaded when they are first used: a worker's ledger needs no SciPy, which only curves of Gaussian noise do.
"""

from typing import TYPE_CHECKING

from crowdveil._lazy import lazy_names

if TYPE_CHECKING:
    from crowdveil.accounting.composition import RULES, Cost, Release, releases, totals
    from crowdveil.accounting.conversion import DEFAULT_DELTA, delta_from_rho, epsilon_from_rho, rho_max
    from crowdveil.accounting.events import ChannelLaw, GaussianLaw, JointLaw, Law, PureLaw, TwoLayerLaw, Unprotected
    from crowdveil.accounting.gaussian import gaussian_delta, gaussian_epsilon
    from crowdveil.accounting.ledger import Budget, Ledger, Loss, OneByOne
    from crowdveil.accounting.nano import nano_down, nano_up
    from crowdveil.accounting.per_question import SpendsByQuestion, Totals, worker_totals
    from crowdveil.accounting.shuffling import (
        ShuffledGuarantee,
        amplify_by_shuffling,
        amplify_levels,
        compose_shuffled,
        minimum_for_amplification,
    )
    from crowdveil.accounting.spend import Spend, cells_at_stake
    from crowdveil.accounting.sqlite import SqliteStorage
    from crowdveil.accounting.storage import Charge, MemoryStorage, Receipt, Storage

__all__ = [
    "DEFAULT_DELTA",
    "RULES",
    "Budget",
    "ChannelLaw",
    "Charge",
    "Cost",
    "GaussianLaw",
    "JointLaw",
    "Law",
    "Ledger",
    "Loss",
    "MemoryStorage",
    "OneByOne",
    "PureLaw",
    "Receipt",
    "Release",
    "ShuffledGuarantee",
    "Spend",
    "SpendsByQuestion",
    "SqliteStorage",
    "Storage",
    "Totals",
    "TwoLayerLaw",
    "Unprotected",
    "amplify_by_shuffling",
    "amplify_levels",
    "cells_at_stake",
    "compose_shuffled",
    "delta_from_rho",
    "epsilon_from_rho",
    "gaussian_delta",
    "gaussian_epsilon",
    "minimum_for_amplification",
    "nano_down",
    "nano_up",
    "releases",
    "rho_max",
    "totals",
    "worker_totals",
]

_MODULES = {
    "composition": (
        "RULES",
        "Cost",
        "Release",
        "releases",
        "totals",
    ),
    "conversion": (
        "DEFAULT_DELTA",
        "delta_from_rho",
        "epsilon_from_rho",
        "rho_max",
    ),
    "events": (
        "ChannelLaw",
        "GaussianLaw",
        "JointLaw",
        "Law",
        "PureLaw",
        "TwoLayerLaw",
        "Unprotected",
    ),
    "gaussian": (
        "gaussian_delta",
        "gaussian_epsilon",
    ),
    "ledger": (
        "Budget",
        "Ledger",
        "Loss",
        "OneByOne",
    ),
    "nano": (
        "nano_down",
        "nano_up",
    ),
    "per_question": (
        "SpendsByQuestion",
        "Totals",
        "worker_totals",
    ),
    "shuffling": (
        "ShuffledGuarantee",
        "amplify_by_shuffling",
        "amplify_levels",
        "compose_shuffled",
        "minimum_for_amplification",
    ),
    "spend": (
        "Spend",
        "cells_at_stake",
    ),
    "sqlite": ("SqliteStorage",),
    "storage": (
        "Charge",
        "MemoryStorage",
        "Receipt",
        "Storage",
    ),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, globals(), _MODULES)
