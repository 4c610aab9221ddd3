"""The SDK reads a study as the app does: what could be read in two ways is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from device import studies

from crowdveil.client import Study, StudyError


def checked(served: dict[str, Any]) -> Study:
    return Study.verify(served, served["log"], studies.PUBLIC_KEY)


def test_an_honest_study_is_read() -> None:
    assert checked(studies.served(studies.definition())).protects_participation


@pytest.mark.parametrize("case", studies.mistyped(), ids=lambda case: case[0])
def test_a_field_of_another_kind_is_refused_by_its_name(case: tuple[str, dict[str, Any]]) -> None:
    field, served = case
    with pytest.raises(StudyError, match=f"field {re.escape(field)} must be"):
        checked(served)


def test_a_study_that_seems_to_hide_skipped_questions_is_refused() -> None:
    with pytest.raises(StudyError, match="protects_participation must be true or false; got '1'"):
        checked(studies.seemingly_hidden())


def test_a_bound_on_answers_needs_hidden_participation() -> None:
    with pytest.raises(StudyError, match="bounds the answers"):
        checked(studies.served(studies.definition(protects=False) | {"max_answers": 1}))
