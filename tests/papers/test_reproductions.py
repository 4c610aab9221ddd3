"""Every reproduction runs in a small setting, and every number of its note is a number of its rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from papers.datasets import write_datasets

from crowdveil.files.datasets import VARIABLE
from crowdveil.papers import REPRODUCTIONS, Reproduction, Settings
from crowdveil.papers.core.reproduction import ClaimVerdict, Row
from crowdveil.papers.core.run import note_text, read_rows, reproduce, write_rows
from crowdveil.papers.loki.selection import OTHERS

pytestmark = pytest.mark.slow
SMALL: dict[str, dict[str, Any]] = {
    **{id: {"n_workers": 60} for id in ("sun-fig2", "sun-fig3", "sun-fig4")},
    "sun-theorems": {"n_workers": 20, "epsilons": (1.0, 2.0)},
    "li-table2": {"others": ((0.58, 0.58),), "least_trials": 3},
    "li-table3": {"least_trials": 3},
    "li-fig2": {"least_trials": 3},
    "li-fig3": {"least_trials": (3, 3)},
    "li-additional": {"least_trials": 2, "timed_workers": 20},
    "wang-theorem4": {"sizes": (20, 60), "epsilons": (0.5, 2.0), "n_questions": 60},
    "loki-fig2a": {"budgets": (5.0, 40.0), "others": OTHERS[1:2], "least_trials": 2},
    "loki-attack": {"n_people": 20_000},
    "beyond-channel": {"n_workers": 60, "cells": (3.0,), "values": (2.0,)},
}
# The columns that hold what a run measured.
MEASURED = {"mae", "error", "change", "value", "answers", "truths", "squared", "named", "share", "exact_epsilon"} | {
    "ability_error",
    "below",
    "after",
}


def reproduction(id: str) -> Reproduction:
    """The reproduction, with a smaller crowd where it takes one."""
    whole = REPRODUCTIONS[id]
    return dataclasses.replace(whole, **SMALL.get(id, {}))


@pytest.fixture(scope="module", autouse=True)
def small_datasets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Small crowds in place of the datasets, whatever this machine has: `make accuracy` judges the real ones."""
    folder = tmp_path_factory.mktemp("datasets")
    write_datasets(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(folder))
        yield


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Where each reproduction ran, filled as the tests ask."""
    return {}


@pytest.fixture(params=list(REPRODUCTIONS))
def ran(
    request: pytest.FixtureRequest, folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Reproduction, Path]:
    """One run of each reproduction, shared by the tests."""
    subject = reproduction(request.param)
    if subject.id not in folders:
        folders[subject.id] = tmp_path_factory.mktemp(subject.id)
        reproduce(subject, SETTINGS, folders[subject.id])
    return subject, folders[subject.id]


SETTINGS = Settings(seed=7, trials=1, quick=True)


def test_a_run_leaves_rows_figures_and_a_note_that_lists_every_claim(ran: tuple[Reproduction, Path]) -> None:
    subject, folder = ran
    for kind in ("csv", "svg", "png", "md"):
        assert (folder / f"{subject.id}.{kind}").stat().st_size > 0
    assert (folder / f"{subject.id}.svg").stat().st_size < 150_000
    claims = subject.claims(read_rows(folder / f"{subject.id}.csv"))
    note = (folder / f"{subject.id}.md").read_text(encoding="utf-8")
    assert claims
    assert all(claim.verdict in get_args(ClaimVerdict) for claim in claims)
    assert all(claim.ours in note and "nan" not in claim.ours for claim in claims)
    assert subject.interpretation in note


def test_a_changed_number_in_the_rows_changes_the_note(ran: tuple[Reproduction, Path], tmp_path: Path) -> None:
    subject, folder = ran
    rows = read_rows(folder / f"{subject.id}.csv")
    write_rows(tmp_path / "changed.csv", [changed(row) for row in rows])
    before, after = (note_text(subject, SETTINGS, each) for each in (rows, read_rows(tmp_path / "changed.csv")))
    assert before == (folder / f"{subject.id}.md").read_text(encoding="utf-8")
    assert before != after


def changed(row: Row) -> Row:
    return {
        name: value * 1.37 if name in MEASURED and isinstance(value, float) else value for name, value in row.items()
    }


def test_the_same_seed_gives_the_same_rows() -> None:
    subject = reproduction("wang-theorem3")
    assert subject.rows(SETTINGS) == subject.rows(SETTINGS)


def test_every_id_of_the_plan_is_there() -> None:
    wanted = {
        "sun": "table2 fig1 fig2 fig3 fig4 fig5 theorems",
        "li": "table2 table3 fig1 fig2 fig3",
        "wang": "theorem2 theorem3 theorem4",
        "loki": "examples fig2a fig2b attack",
        "beyond": "channel",
    }
    assert {f"{paper}-{each}" for paper, ids in wanted.items() for each in ids.split()} <= set(REPRODUCTIONS)


def test_missing_data_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="needs the dataset 'wsd'"):
        reproduce(REPRODUCTIONS["sun-table2"], Settings(1, 1, data=tmp_path), tmp_path)
