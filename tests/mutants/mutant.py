"""What a planted mistake is: one text in one file, and the tests that have to notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake in one file, and who should notice."""

    name: str
    file: str
    text: str
    mistake: str
    tests: str
    only: str = ""
