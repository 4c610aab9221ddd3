"""Every field of a study is of its kind before anything is read from it.

A `1` that one line takes for "yes" and another for "no" could promise a protection that nobody draws. The same list as
`device/schema_check.js`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from crowdveil.errors import CrowdveilError

# The broker allows no more; each box doubles the answers.
_MOST_BOXES = 6
_HASH = re.compile(r"[0-9a-f]{64}")

Kind: TypeAlias = Callable[[Any, str], None]


class FieldError(CrowdveilError):
    """A field that could be read in two ways."""


def _must(words: str, holds: Callable[[Any], bool]) -> Kind:
    def kind(value: Any, place: str) -> None:
        if not holds(value):
            raise FieldError(f"the study's field {place} must be {words}; got {str(value)[:40]!r}")

    return kind


def _list(each: Kind, most: int | None = None) -> Kind:
    is_list = _must(
        f"a list{f' of at most {most}' if most else ''}",
        lambda value: isinstance(value, list) and (most is None or len(value) <= most),
    )

    def kind(value: Any, place: str) -> None:
        is_list(value, place)
        for part in value:
            each(part, place)

    return kind


def _object(**fields: Kind) -> Kind:
    is_object = _must("an object", lambda value: isinstance(value, dict))

    def kind(value: Any, place: str) -> None:
        is_object(value, place)
        for name, part in fields.items():
            part(value.get(name, _MISSING), f"{place}.{name}" if place else name)

    return kind


def _or_null(other: Kind) -> Kind:
    def kind(value: Any, place: str) -> None:
        if value is not None:
            other(value, place)

    return kind


class _Missing:
    def __str__(self) -> str:
        return "nothing"


_MISSING = _Missing()
_text = _must("text", lambda value: isinstance(value, str))
_flag = _must("true or false", lambda value: isinstance(value, bool))
_count = _must("a whole number, 0 or more", lambda value: type(value) is int and value >= 0)
_some = _must("a whole number, 1 or more", lambda value: type(value) is int and value >= 1)

_DOMAINS = {
    "choices": _object(options=_list(_text)),
    "scale": _object(low=_text, high=_text, step=_text),
    "tick-all": _object(boxes=_list(_text, _MOST_BOXES)),
}
_type = _must(f"one of {', '.join(_DOMAINS)}", lambda value: isinstance(value, str) and value in _DOMAINS)


def _domain(value: Any, place: str) -> None:
    _object(type=_type)(value, place)
    _DOMAINS[value["type"]](value, place)


_DEFINITION = _object(
    title=_text,
    purpose=_text,
    requester=_text,
    consent=_object(version=_count, text=_text),
    protects_participation=_flag,
    linkable=_flag,
    partial_pay=_flag,
    max_answers=_or_null(_some),
    questions=_list(
        _object(id=_text, text=_text, domain=_domain, show_if=_or_null(_object(question=_text, any_of=_list(_text))))
    ),
    levels=_list(
        _object(
            name=_text,
            protected=_flag,
            pay_cents=_count,
            channels=_object(),
            charge=_or_null(_object(epsilon_nano=_count, rho_nano=_count, reports=_count)),
        )
    ),
    channels=_object(),
)


def check_fields(definition: dict[str, Any]) -> None:
    """Refuse a definition in which a field is not of its kind.

    >>> check_fields({"title": 7})
    Traceback (most recent call last):
    crowdveil.client.schema_check.FieldError: the study's field title must be text; got '7'
    """
    _DEFINITION(definition, "")


_POOL = _object(
    pool=_object(
        batch_size=_must("a whole number from 1 to 50", lambda value: type(value) is int and 1 <= value <= 50),
        redundancy=_some,
        max_reports=_some,
        stop=_or_null(_object(probability=_text, min_reports=_some)),
        assignment=_must("fewest-first or listed", lambda value: value in ("fewest-first", "listed")),
        adaptive=_flag,
        tasks_about_items=_flag,
        n_tasks=_some,
        tasks_root=_must("a hash of 64 hexadecimal digits", lambda value: bool(_HASH.fullmatch(str(value)))),
    )
)


def check_pool_fields(definition: dict[str, Any]) -> None:
    """Refuse a pool in which a rule is not of its kind."""
    _POOL(definition, "")
