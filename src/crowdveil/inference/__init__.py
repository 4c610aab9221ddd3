"""The methods, by the names the command line uses. A new one is one file and one line here."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from crowdveil.errors import InputError
from crowdveil.inference.base import IterativeMethod, Method
from crowdveil.inference.majority import Majority

METHODS: dict[str, type[Method]] = {kind.name: kind for kind in (Majority,)}

__all__ = ["METHODS", "IterativeMethod", "Majority", "Method", "method"]


def method(name: str, **parameters: Any) -> Method:
    """The method of that name with these parameters.

    >>> method("majority")
    Majority()
    """
    kind = METHODS.get(name)
    if kind is None:
        raise InputError(f"method must be one of {', '.join(METHODS)}; got {name!r}")
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for parameter in parameters:
        if parameter not in known:
            raise InputError(f"method {name} has the parameters {', '.join(known) or 'none'}; got {parameter!r}")
    return kind(**parameters)
