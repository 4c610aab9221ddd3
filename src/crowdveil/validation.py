"""What a setting may be: its annotation says so, in words and as a test, and one check reads the annotation."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from crowdveil.errors import InputError

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True, slots=True)
class Rule:
    """What a setting must be beyond its type; None, where the type allows it, keeps every rule.

    A test that needs a name of its module stands in a constant: inside an annotation it would not find it.
    """

    words: str
    holds: Callable[[Any], bool]
    fix: str = ""


# More people, questions or options nobody has, and products of two still fit into 64 bits.
_MOST = 10**9
PROBABILITY = Rule("from 0 to 1", lambda number: 0 <= number <= 1)
COUNT = Rule(f"from 1 to {_MOST}", lambda number: 1 <= number <= _MOST)
SEED = Rule("of at most 18 digits", lambda number: abs(number) < 10**18)
_PART = "it is the part that is answered, and 1 is all"
_FINITE = Rule("finite", lambda value: not isinstance(value, float) or math.isfinite(value))

# Sums and squares of what is smaller stay numbers.
_LARGE = 1e100
Positive: TypeAlias = Annotated[float, Rule("positive and below 1e100", lambda number: 0 < number < _LARGE)]
NotNegative: TypeAlias = Annotated[float, Rule("0 or more, and below 1e100", lambda number: 0 <= number < _LARGE)]
Probability: TypeAlias = Annotated[float, PROBABILITY]
Share: TypeAlias = Annotated[float, Rule("above 0 and at most 1", lambda number: 0 < number <= 1, _PART)]
Number: TypeAlias = Annotated[float, Rule("a number", lambda number: not math.isnan(number))]
AtLeastOne: TypeAlias = Annotated[int, Rule("at least 1", lambda number: number >= 1)]
Count: TypeAlias = Annotated[int, COUNT]
Seed: TypeAlias = Annotated[int, SEED]


def check_settings(settings: object) -> None:
    """Refuse a dataclass with a setting that is not what its annotation says; call it in `__post_init__`.

    >>> @dataclass(frozen=True)
    ... class Sieve:
    ...     width: Positive
    ...     __post_init__ = check_settings
    >>> Sieve(2)
    Sieve(width=2.0)
    >>> Sieve(-2)
    Traceback (most recent call last):
    crowdveil.errors.InputError: width must be positive and below 1e100; got -2
    """
    kind: Any = type(settings)
    for name, hint in _hints(kind).items():
        object.__setattr__(settings, name, checked(name, getattr(settings, name), hint))


def checked(name: str, value: Any, hint: Any) -> Any:
    """The value, a whole number as a float where the annotation asks for one; or a refusal."""
    kind, *rules = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    value = _from_series(name, value) if get_origin(kind) is Mapping else value
    if not _fits(value, kind):
        raise InputError(f"{name} must be {_spoken(kind)}; got {shown(value)}")
    kept = _kept(value, kind)
    for rule in rules or [_FINITE]:
        if value is not None and not rule.holds(kept):
            raise InputError(f"{name} must be {rule.words}; got {shown(value)}", fix=rule.fix)
    return kept


def _from_series(name: str, value: Any) -> Any:
    """A Series of pandas as the mapping that it is, without its missing values; anything else as it is."""
    if isinstance(value, Mapping) or getattr(value, "ndim", 0) != 1 or not hasattr(value, "to_dict"):
        return value
    if not value.index.is_unique:
        repeated = value.index[value.index.duplicated()][0]
        raise InputError(f"{name} must name each entry once; got {shown(repeated)} twice", fix="keep one of them")
    return value.dropna().to_dict()


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}


def _kept(value: Any, kind: Any) -> Any:
    """The value as settings hold it: any number as a float where a float is asked for, any list as a tuple."""
    if get_origin(kind) is tuple:
        return tuple(map(_kept, value, _places(kind, len(value))))
    try:
        return float(value) if isinstance(value, Real) and float in (kind, *get_args(kind)) else value
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _fits(value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if origin is tuple:
        return isinstance(value, tuple | list) and _all_fit(value, _places(hint, len(value)))
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def _all_fit(values: Sequence[Any], hints: tuple[Any, ...]) -> bool:
    return len(values) == len(hints) and all(map(_fits, values, hints))


def _places(hint: Any, n: int) -> tuple[Any, ...]:
    """What stands in each place of a tuple, of one that may be as long as it likes in `n` places."""
    hints = get_args(hint)
    return hints[:1] * n if hints[-1] is Ellipsis else hints


def _spoken(hint: Any) -> str:
    """A type in words; None is what stands for nothing and need not be said."""
    parts = [each for each in get_args(hint) if each not in (NoneType, Ellipsis)]
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_spoken, parts)))
    if get_origin(hint) is Literal:
        return ", ".join(parts[:-1]) + f" or {parts[-1]}"
    if get_origin(hint) is tuple:
        spoken = ", ".join(map(_spoken, parts))
        return f"a list: {spoken}, …" if Ellipsis in get_args(hint) else f"a list of {len(parts)}: {spoken}"
    bare = get_origin(hint) or hint
    return _WORDS.get(bare, f"of type {bare.__name__}")


def shown(value: object) -> str:
    """The value as it was given, but of thousands of digits only that they are so many."""
    try:
        # A number of NumPy would name its type beside it.
        return reprlib.repr(value) if isinstance(value, int) or not isinstance(value, Real) else str(value)
    except ValueError:
        return "a number of thousands of digits"
