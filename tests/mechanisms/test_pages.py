"""The examples on the mechanisms' pages, and on the page of the wire form, are true."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGES = [*sorted((REFERENCE / "mechanisms").glob("[!i]*.md")), REFERENCE / "channel-wire-form.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_on_the_page_are_true(page: Path) -> None:
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0
