"""English sentences of the library in the reader's language: recognised by their template, filled in anew."""

from __future__ import annotations

import re
from functools import lru_cache

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext

from crowdveil.broker.console.i18n.formatting import localize_numbers, word
from crowdveil.broker.console.i18n.messages import TEMPLATES

_HOLE = re.compile(r"%\((\w+)\)s")
# Holes that hold sentences or names of ours; all others hold what somebody typed, or a number.
_SENTENCES = {"why", "floor", "measure", "weighting", "objective", "kind"}
_NAMES = {"state", "states", "roles", "higher", "lower"}


def render_sentence(sentence: str) -> str | SafeString:
    """For templates: in the reader's language, or marked as English where there is no translation."""
    if (get_language() or "en").startswith("en"):
        return sentence
    translation = translate(sentence)
    return format_html('<span lang="en">{}</span>', sentence) if translation is None else translation


def translate(sentence: str) -> str | None:
    """The whole sentence, else its parts; None where one of them is unknown."""
    if (whole := _translate_part(sentence)) is not None:
        return whole
    parts = [_translate_part(part) for part in sentence.split("; ")]
    return None if None in parts else "; ".join(part for part in parts if part is not None)


def recognised(sentence: str) -> bool:
    """Whether the sentence, or each of its parts, has a template."""
    return bool(_match(sentence)) or all(_match(part) for part in sentence.split("; "))


def _translate_part(sentence: str) -> str | None:
    if (match := _match(sentence)) is None:
        return None
    template, holes = match
    return gettext(template) % {name: _format_hole(name, value) for name, value in holes.items()}


def _match(sentence: str) -> tuple[str, dict[str, str]] | None:
    for template, pattern in _patterns():
        if match := pattern.fullmatch(sentence):
            return template, match.groupdict()
    return None


def _format_hole(name: str, value: str) -> str:
    if name in _SENTENCES:
        return translate(value) or value
    if name in _NAMES:
        return " / ".join(word(each) for each in value.split(" or "))
    return localize_numbers(value)


@lru_cache(maxsize=1)
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """Those with most letters of their own first: they say the most about a sentence."""
    ordered = sorted(TEMPLATES, key=lambda template: -len(_HOLE.sub("", template)))
    return [(template, re.compile(_pattern(template), re.DOTALL)) for template in ordered]


def _pattern(template: str) -> str:
    pieces = _HOLE.split(template)
    return "".join(f"(?P<{piece}>.+)" if index % 2 else re.escape(piece) for index, piece in enumerate(pieces))
