"""The mechanisms, by the names the command line and the wire use. A new one is one file and one line here."""

from __future__ import annotations

from typing import Any

from crowdveil.mechanisms.base import ChannelMechanism, EpsilonMechanism, Mechanism
from crowdveil.mechanisms.dense_factorization import DenseFactorization
from crowdveil.mechanisms.discrete_gaussian import DiscreteGaussian
from crowdveil.mechanisms.discrete_laplace import DiscreteLaplace
from crowdveil.mechanisms.gaussian import Gaussian
from crowdveil.mechanisms.laplace import Laplace
from crowdveil.mechanisms.matrix_factorization import MatrixFactorization
from crowdveil.mechanisms.none import NoPrivacy
from crowdveil.mechanisms.one_layer import OneLayer
from crowdveil.mechanisms.optimal_scale import OptimalScale
from crowdveil.mechanisms.piecewise import Piecewise
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.mechanisms.sparse_two_layer import SparseTwoLayer
from crowdveil.mechanisms.subset_selection import SubsetSelection
from crowdveil.mechanisms.two_layer import TwoLayer
from crowdveil.registry import create

MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind
    for kind in (
        RandomizedResponse,
        SubsetSelection,
        DiscreteLaplace,
        DiscreteGaussian,
        OptimalScale,
        Piecewise,
        OneLayer,
        NoPrivacy,
        TwoLayer,
        SparseTwoLayer,
        Laplace,
        Gaussian,
        MatrixFactorization,
        DenseFactorization,
    )
}
"""The built-in mechanisms by name, as the command line, the wire form and `mechanism` use them."""

__all__ = [
    "MECHANISMS",
    "ChannelMechanism",
    "DenseFactorization",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "EpsilonMechanism",
    "Gaussian",
    "Laplace",
    "MatrixFactorization",
    "Mechanism",
    "NoPrivacy",
    "OneLayer",
    "OptimalScale",
    "Piecewise",
    "RandomizedResponse",
    "SparseTwoLayer",
    "SubsetSelection",
    "TwoLayer",
    "mechanism",
]


def mechanism(name: str, /, **parameters: Any) -> Mechanism:
    """Create a mechanism by its name.

    `name` is a key of `MECHANISMS`, or of an installed entry point of the group `crowdveil.mechanisms`; `parameters`
    are the settings of its class. Returns the configured mechanism; call its `randomize`, `channel` or `guarantee`.

    >>> mechanism("randomized-response", epsilon=1)
    RandomizedResponse(epsilon=1.0, protect_participation=False)
    """
    return create("mechanism", MECHANISMS, name, parameters)
