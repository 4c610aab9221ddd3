"""What a mechanism's releases cost: the spend that accounting reads, from the mechanism, its domain and a count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crowdveil.accounting import GaussianLaw, JointLaw, Law, PureLaw, Spend, TwoLayerLaw
from crowdveil.domain import Domain
from crowdveil.errors import InputError
from crowdveil.mechanisms import ChannelMechanism, Mechanism


def mechanism_spend(mechanism: Mechanism, domain: Domain, *, name: str, count: int = 1) -> Spend:
    """`count` reports by this mechanism. A research mechanism without a rule of its own is refused, not guessed."""
    if isinstance(mechanism, ChannelMechanism):
        return Spend.through(mechanism.channel(domain), name=name, count=count)
    if mechanism.name not in _RESEARCH:
        raise InputError(f"mechanism {mechanism.name} has no composition rule", fix="account for it by hand")
    return Spend(_RESEARCH[mechanism.name](mechanism, domain), name, count)


def independent(mechanism: Mechanism, domain: Domain) -> bool:
    """Whether reports about different questions are drawn independently of each other."""
    return not isinstance(mechanism_spend(mechanism, domain, name="").law, JointLaw | TwoLayerLaw)


def _pure(mechanism: Any, domain: Domain) -> Law:
    promise = mechanism.guarantee(domain)
    return PureLaw(promise.epsilon, promise.unit, promise.protects_participation)


def _joint(mechanism: Any, domain: Domain) -> Law:
    promise = mechanism.guarantee(domain)
    return JointLaw(promise.epsilon, promise.unit, promise.protects_participation)


def _gaussian(mechanism: Any, domain: Domain) -> Law:
    promise = mechanism.guarantee(domain)
    spread = domain.numbers.max() - domain.numbers.min()
    return GaussianLaw(float(spread) / mechanism.noise_sigma(domain), promise.unit, promise.protects_participation)


def _two_layer(mechanism: Any, domain: Domain) -> Law:
    low, high = mechanism.bounds(domain)
    return TwoLayerLaw(low, high, domain.size)


_RESEARCH: dict[str, Callable[[Any, Domain], Law]] = {
    "laplace": _pure,
    # Its ε is drawn once per worker; given the draw, reports are independent, and the largest draw bounds them all.
    "sparse-two-layer": _pure,
    "gaussian": _gaussian,
    "two-layer": _two_layer,
    "matrix-factorization": _joint,
    "dense-factorization": _joint,
}
