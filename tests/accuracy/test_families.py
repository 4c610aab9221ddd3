"""The families are those on which methods were compared: at least forty, repeatable, and never moved unseen."""

from __future__ import annotations

import hashlib

import numpy as np
from accuracy.compare_methods import calibration_error, compare, holm, macro_auc, macro_f1, run_cell
from accuracy.families import FAMILIES

PINNED = "2bbf3ec45dcefff6"


def test_families_are_the_ones_that_were_fixed_before_methods_were_compared() -> None:
    assert len(FAMILIES) >= 40
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    digest = hashlib.sha256("\n".join(map(repr, FAMILIES)).encode()).hexdigest()
    assert digest[:16] == PINNED


def test_a_seed_draws_the_same_crowd_and_the_same_noise() -> None:
    for family in FAMILIES[::5]:
        first, second = (family.draw(3) for _ in range(2))
        assert (first[0].answer == second[0].answer).all()
        reports = [family.report(answers, 1.0, 3) for answers, _ in (first, second)]
        assert (reports[0].report == reports[1].report).all()
        assert len(reports[0].channels) == (3 if family.mixed else 1)


def test_scores_of_known_cases() -> None:
    truth = np.array([0, 0, 1, 1])
    assert macro_f1(np.array([0, 0, 1, 0]), truth) == np.mean([0.8, 2 / 3])
    assert macro_auc(np.array([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5], [0.1, 0.9]]), truth) == 0.75
    assert holm(np.array([0.01, 0.04, 0.03])).tolist() == [0.03, 0.06, 0.06]
    right = np.arange(3000) % 5 > 0
    assert calibration_error(np.full(3000, 0.8), right) < 0.01
    assert calibration_error(np.full(3000, 0.9), right) > 0.09


def test_a_cell_compares_methods_on_the_same_reports() -> None:
    rows = run_cell(FAMILIES[0], 2.0, ["majority", "dawid-skene"], 3)
    assert [len(row["accuracy"]) for row in rows] == [3, 3]
    (cell,) = compare(rows, "dawid-skene", "majority")
    gain = np.mean(rows[1]["accuracy"]) - np.mean(rows[0]["accuracy"])
    assert abs(cell["gain"] - gain) < 1e-12
