"""The list of mutants stays true to the source: `make mutants` plants them, this only looks whether it could."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutants import MUTANTS
from mutants.mutant import Mutant
from mutants.run import ROOT, SOURCE


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_still_has_a_place_and_somebody_to_notice(mutant: Mutant) -> None:
    source = (Path(ROOT) / SOURCE / mutant.file).read_text()
    assert source.count(mutant.text) == 1
    assert all((ROOT / path).is_file() for path in mutant.tests.split())
