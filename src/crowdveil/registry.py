"""Making a member of a family by its name: one sentence for a wrong name, an unknown parameter or a missing one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from crowdveil.errors import InputError

Member = TypeVar("Member")


def made(family: str, kinds: Mapping[str, type[Member]], name: str, parameters: Mapping[str, Any]) -> Member:
    """The member of that name with these parameters.

    >>> from crowdveil.mechanisms import RandomizedResponse
    >>> made("mechanism", {"rr": RandomizedResponse}, "rr", {"sigma": 1})
    Traceback (most recent call last):
    crowdveil.errors.InputError: mechanism rr has the parameters epsilon, protect_participation; got 'sigma'
    """
    kind = kinds.get(name)
    if kind is None:
        raise InputError(f"{family} must be one of {', '.join(kinds)}; got {name!r}")
    known = fields(kind)  # type: ignore[arg-type]
    names = [field.name for field in known]
    for parameter in parameters:
        if parameter not in names:
            raise InputError(f"{family} {name} has the parameters {', '.join(names) or 'none'}; got {parameter!r}")
    for field in known:
        if field.name not in parameters and field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"{family} {name} needs {field.name}", fix=f"give --{field.name}")
    try:
        return kind(**parameters)
    except TypeError:
        given = ", ".join(f"{parameter} = {value!r}" for parameter, value in parameters.items())
        raise InputError(f"the parameters of {family} {name} must be of the right kind; got {given}") from None
