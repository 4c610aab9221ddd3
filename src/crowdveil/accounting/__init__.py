"""What was released, what it costs, and the ledger that refuses to overspend."""

from crowdveil.accounting.composition import RULES, Cost, Release, releases, totals
from crowdveil.accounting.conversion import DEFAULT_DELTA, delta_from_rho, epsilon_from_rho, rho_max
from crowdveil.accounting.events import ChannelLaw, GaussianLaw, JointLaw, Law, PureLaw, TwoLayerLaw, Unprotected
from crowdveil.accounting.gaussian import gaussian_delta, gaussian_epsilon
from crowdveil.accounting.ledger import Budget, Ledger, Loss
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
