"""Making a member of a family by its name: one sentence for a wrong name, an unknown parameter or a wrong value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from difflib import get_close_matches
from math import isnan
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from crowdveil.errors import InputError

Member = TypeVar("Member")

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def made(family: str, kinds: Mapping[str, type[Member]], name: str, parameters: Mapping[str, Any]) -> Member:
    """The member of that name with these parameters.

    >>> from crowdveil.mechanisms import RandomizedResponse
    >>> made("mechanism", {"rr": RandomizedResponse}, "rr", {"sigma": 1})
    Traceback (most recent call last):
    crowdveil.errors.InputError: mechanism rr has the parameters epsilon, protect_participation; got 'sigma'
    """
    kind = kinds.get(name)
    if kind is None:
        raise InputError(f"{family} must be one of {', '.join(kinds)}; got {name!r}", fix=meant(name, kinds))
    check_parameters(f"{family} {name}", kind, parameters)
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name not in parameters and field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"{family} {name} needs {field.name}", fix=f"give --{field.name}")
    for parameter, value in parameters.items():
        # The class knows a better sentence for its ε.
        if parameter != "epsilon" and isinstance(value, float) and isnan(value):
            raise InputError(f"{parameter} of {family} {name} must be a number; got {value}")
    return kind(**parameters)


def meant(name: str, known: Iterable[str]) -> str:
    """The cure for a name that is nearly right; nothing where none is near.

    >>> meant("Randomised-respons", ["none", "randomized-response"])
    'did you mean randomized-response?'
    """
    near = get_close_matches(name.lower(), list(known), 1)
    return f"did you mean {near[0]}?" if near else ""


def check_parameters(whose: str, kind: type[Any], parameters: Mapping[str, Any]) -> None:
    """Refuse what is no field of this dataclass, and a value of another type than its field has."""
    names, hints = [field.name for field in fields(kind)], get_type_hints(kind)
    for parameter, value in parameters.items():
        if parameter not in names:
            raise InputError(
                f"{whose} has the parameters {', '.join(names) or 'none'}; got {parameter!r}",
                fix=meant(parameter, names),
            )
        if not _fits(value, hints[parameter]):
            raise InputError(f"{parameter} of {whose} must be {_spoken(hints[parameter])}; got {value!r}")


def _fits(value: object, hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and _all_fit(value, get_args(hint))
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    return isinstance(value, get_origin(hint) or hint)


def _all_fit(values: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    wanted = hints[:1] * len(values) if hints[-1] is Ellipsis else hints
    return len(values) == len(wanted) and all(map(_fits, values, wanted))


def _spoken(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(dict.fromkeys(_spoken(each) for each in get_args(hint) if each is not NoneType))
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    if get_origin(hint) is tuple:
        parts = [_spoken(each) for each in get_args(hint) if each is not Ellipsis]
        return (
            f"a list of {len(parts)}: {', '.join(parts)}"
            if Ellipsis not in get_args(hint)
            else f"a list: {parts[0]}, …"
        )
    bare = get_origin(hint) or hint
    return _WORDS.get(bare, f"of type {bare.__name__}")
