"""What came over the network is printed without the characters that command a terminal."""

from __future__ import annotations

import unicodedata

import typer

_HARMLESS = "\n\t"


def escape_controls(text: str) -> str:
    """Control and formatting characters as JSON escapes, line breaks and tabs apart: no title clears the screen."""
    return "".join(
        f"\\u{ord(each):04x}" if unicodedata.category(each) in ("Cc", "Cf") and each not in _HARMLESS else each
        for each in text
    )


def echo(text: object) -> None:
    typer.echo(escape_controls(str(text)))
