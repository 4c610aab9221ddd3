"""The committed page of the papers is one whole run: every reproduction, one seed, and counts that add up."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from crowdveil.papers import REPRODUCTIONS
from crowdveil.papers.core.run import VERDICTS

ROOT = Path(__file__).parent.parent.parent
EXPLAIN = ROOT / "docs" / "explain"


def notes(text: str) -> dict[str, str]:
    """Each note of a page by its id, in the order of the page."""
    parts = re.split(r"^## ([\w-]+): ", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("papers_page", ROOT / "tools" / "papers_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page() -> str:
    return (EXPLAIN / "papers.md").read_text(encoding="utf-8")


def test_every_reproduction_has_its_note_and_figure_in_the_order_of_the_registry(page: str) -> None:
    found = notes(page)
    assert list(found) == list(REPRODUCTIONS)
    for id, note in found.items():
        assert f"](papers/{id}.svg)" in note
        assert (EXPLAIN / "papers" / f"{id}.svg").stat().st_size > 0


def test_every_note_states_its_reading_as_the_code_does(page: str) -> None:
    for id, note in notes(page).items():
        assert REPRODUCTIONS[id].interpretation in note
        assert note.startswith(REPRODUCTIONS[id].title)


def test_the_page_comes_from_one_quick_run(page: str) -> None:
    lines = re.findall(r"^Seed (\d+), quick[;,]", page, flags=re.MULTILINE)
    assert len(lines) == len(REPRODUCTIONS)
    assert len(set(lines)) == 1


def test_the_verdicts_counted_at_the_head_are_those_of_the_notes(page: str) -> None:
    for id, note in notes(page).items():
        counted = Counter(re.findall(rf"\| ({'|'.join(VERDICTS)}) \|$", note, flags=re.MULTILINE))
        shown = " | ".join(str(counted[verdict]) for verdict in VERDICTS)
        assert f"\n| {id} | {shown} |\n" in page


def test_a_stitched_page_is_refused(page: str) -> None:
    check = tool().check
    check(page)
    seed = re.findall(r"^Seed (\d+), ", page, flags=re.MULTILINE)[0]
    with pytest.raises(SystemExit, match="one run"):
        check(page.replace(f"Seed {seed}, ", f"Seed {int(seed) + 1}, ", 1))
    with pytest.raises(SystemExit, match="left out sun-fig1"):
        check(page.replace("| sun-fig1 |", "| sun-fig1 (left out: no data) |"))
