"""Making a member of a family by its name: one sentence for a wrong name or an unknown parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any, TypeVar

from crowdveil.errors import InputError

Member = TypeVar("Member")


def create(family: str, kinds: Mapping[str, type[Member]], name: str, parameters: Mapping[str, Any]) -> Member:
    """The member of that name with these parameters.

    >>> from crowdveil.mechanisms import RandomizedResponse
    >>> create("mechanism", {"rr": RandomizedResponse}, "rr", {"sigma": 1})
    Traceback (most recent call last):
    crowdveil.errors.InputError: mechanism rr has the parameters epsilon, protect_participation; got 'sigma'
    """
    kind = kinds.get(name) or _load_installed(family, name)
    if kind is None:
        raise InputError(f"{family} must be one of {', '.join(kinds)}; got {name!r}", fix=did_you_mean(name, kinds))
    check_names(f"{family} {name}", kind, parameters)
    for missing in missing_parameters(kind, parameters):
        raise InputError(f"{family} {name} needs {missing}", fix=f"pass {missing}=…")
    return kind(**parameters)


def missing_parameters(kind: type[Any], parameters: Mapping[str, Any]) -> list[str]:
    """What this dataclass cannot do without and was not given."""
    needed = [each for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING]
    return [each.name for each in needed if each.init and each.name not in parameters]


def _load_installed(family: str, name: str) -> Any:
    """The member that another installed package offers under this name; None where none does.

    A package declares it as an entry point of the group `crowdveil.methods` or `crowdveil.mechanisms`.
    """
    offered = entry_points(group=f"crowdveil.{family}s", name=name)
    return next((point.load() for point in offered), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The cure for a name that is nearly right; nothing where none is near.

    >>> did_you_mean("Randomised-respons", ["none", "randomized-response"])
    'did you mean randomized-response?'
    """
    near = get_close_matches(name.lower(), list(known), 1)
    return f"did you mean {near[0]}?" if near else ""


def check_names(whose: str, kind: type[Any], parameters: Iterable[str]) -> None:
    """Refuse what is no setting of this dataclass."""
    names = [field.name for field in fields(kind)]
    for parameter in parameters:
        if parameter not in names:
            raise InputError(
                f"{whose} has {f'the parameters {listed}' if (listed := ', '.join(names)) else 'no parameters'};"
                f" got {parameter!r}",
                fix=did_you_mean(parameter, names),
            )
