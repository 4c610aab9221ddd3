"""crowdveil study: what it prints of a study's results."""

from __future__ import annotations

from typing import Any

import pytest

from crowdveil.cli.study import _tell_results


def results(*, informative: bool, needed: dict[str, Any] | None) -> dict[str, Any]:
    question = {"question": "ill", "n_reports": 12, "value": "superior", "low": 0.0, "high": 1.0}
    part = {"method": "frequency", "warnings": [], "questions": [question | {"informative": informative}]}
    return {"batch": 1, "n": 12, "privacy": "", "parts": [part | {"needed": needed}]}


def test_where_the_reports_cannot_tell_no_estimate_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    _tell_results(results(informative=False, needed={"n_workers": 480, "epsilon": 3.14159}))
    printed = capsys.readouterr().out
    assert "superior" not in printed
    assert "the 12 reports say hardly more than a guess; it would need about 480 people or ε 3.1" in printed
    _tell_results(results(informative=False, needed=None))
    assert "hardly more than a guess\n" in capsys.readouterr().out
    _tell_results(results(informative=True, needed=None))
    assert "ill: superior [0.0, 1.0] by frequency" in capsys.readouterr().out
