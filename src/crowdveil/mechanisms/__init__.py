"""The mechanisms, by the names the command line and the wire use. A new one is one file and one line here."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from crowdveil.errors import InputError
from crowdveil.mechanisms.base import ChannelMechanism, Mechanism
from crowdveil.mechanisms.none import NoPrivacy
from crowdveil.mechanisms.randomized_response import RandomizedResponse

MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind
    for kind in (
        RandomizedResponse,
        NoPrivacy,
    )
}

__all__ = ["MECHANISMS", "ChannelMechanism", "Mechanism", "NoPrivacy", "RandomizedResponse", "mechanism"]


def mechanism(name: str, **parameters: Any) -> Mechanism:
    """The mechanism of that name with these parameters.

    >>> mechanism("randomized-response", epsilon=1)
    RandomizedResponse(epsilon=1.0, protect_participation=False)
    """
    kind = MECHANISMS.get(name)
    if kind is None:
        raise InputError(f"mechanism must be one of {', '.join(MECHANISMS)}; got {name!r}")
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for parameter in parameters:
        if parameter not in known:
            raise InputError(f"mechanism {name} has the parameters {', '.join(known)}; got {parameter!r}")
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name not in parameters and field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"mechanism {name} needs {field.name}", fix=f"give --{field.name}")
    return kind(**parameters)
