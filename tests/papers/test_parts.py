"""The parts that reproductions share: frames, worked numbers and the attack's laws."""

from __future__ import annotations

from fractions import Fraction
from math import inf, log

import numpy as np
import pytest

from crowdveil.channel.two_layer import value_epsilon
from crowdveil.domain import Choices
from crowdveil.inference import Majority
from crowdveil.papers.beyond import two_layer_with
from crowdveil.papers.core.reproduction import Row, near, paired_difference, smaller
from crowdveil.papers.core.run import page
from crowdveil.papers.li.additional import flip_epsilon
from crowdveil.papers.li.trial import as_answers, error_rate, errors, peer_grading, privacy_rows
from crowdveil.papers.loki.films import impute_ratings
from crowdveil.papers.loki.levels import choice_epsilons, rating_epsilons
from crowdveil.papers.loki.linkage_attack import _name, _unique
from crowdveil.reports import Reports
from crowdveil.simulate import ChoiceCrowd


def test_the_formula_for_choices_is_the_exact_loss_at_that_delta() -> None:
    row = choice_epsilons(0.3, 0.01)
    assert row["formula_epsilon"] == pytest.approx(row["exact_epsilon"], abs=1e-6)
    assert float(row["pure_epsilon"]) > float(row["exact_epsilon"])
    assert choice_epsilons(0.0, 0.01)["exact_epsilon"] == inf


def test_the_formula_for_ratings_solves_its_own_equation_and_understates_the_loss() -> None:
    row = rating_epsilons(6.0, 0.01)
    x = float(row["formula_epsilon"]) * 36
    assert x / 32 + log(x) == pytest.approx(log(100))
    assert float(row["exact_epsilon"]) > float(row["formula_epsilon"])


def test_reading_reports_as_answers_only_forgets_the_channel() -> None:
    answers = peer_grading(1).answers
    reports = Reports.unprotected(answers)
    assert np.array_equal(as_answers(reports).report, reports.report)
    assert not as_answers(reports).protected


def test_a_tie_counts_half() -> None:
    crowd = ChoiceCrowd(n_workers=2, n_questions=40, domain=Choices(("a", "b")), ability=(0.5, 0.5), share=1.0).draw(3)
    counts = np.bincount(crowd.answers.question, crowd.answers.answer == crowd.truth[crowd.answers.question])
    expected = 1 - float(np.mean(counts / 2))
    assert errors(Reports.unprotected(crowd.answers), crowd.truth.astype(float))["MV"] == pytest.approx(expected)


def test_unknown_truths_are_not_scored() -> None:
    data = peer_grading(2)
    estimate = Majority().fit(Reports.unprotected(data.answers))
    right = np.asarray(estimate.value) == data.truth
    assert error_rate(estimate, np.where(right, data.truth, np.nan)) < 0.1


def test_two_layers_lose_more_than_they_claim_with_five_answers() -> None:
    rows = privacy_rows(peer_grading(1).answers, (0.5,))
    exact = {row["layers"]: float(row["exact_epsilon"]) for row in rows}
    assert exact["one"] == pytest.approx(0.5, abs=1e-9)
    assert exact["two"] > 1


def test_two_layers_can_be_held_to_an_exact_loss() -> None:
    mechanism, exact = two_layer_with(peer_grading(1).answers, 1.0)
    assert exact <= 1
    low = Fraction(str(mechanism.low)) - Fraction(1, 512)
    assert value_epsilon(5, 2, low, Fraction(1, 2)) > 1


def test_one_public_flip_costs_the_same_however_many_answers() -> None:
    assert flip_epsilon("one layer", 50) == pytest.approx(log(0.65 / 0.35))
    assert flip_epsilon("uniform", 50) > flip_epsilon("uniform", 5) > log(0.65 / 0.35)


def test_the_attacker_names_who_is_unique_and_guesses_among_equals() -> None:
    roll = np.array([[1, 1, 2], [5, 5, 5], [0, 0, 0]])
    assert _unique(roll).tolist() == [False, False, True]
    rng = np.random.default_rng(1)
    assert _name(roll, roll[:, [2]], np.array([2]), [1.0] * 3, rng).all()
    guesses = [_name(roll, roll[:, [0]], np.array([0]), [1.0] * 3, rng)[0] for _ in range(200)]
    assert 60 < sum(guesses) < 140


def test_a_verdict_needs_a_number() -> None:
    assert near(float("nan"), 1.0, 0.1) == "cannot tell"
    assert near(1.05, 1.0, 0.1) == "holds"
    assert near(1.2, 1.0, 0.1) == "differs"


def test_a_pair_is_compared_on_the_same_trials() -> None:
    rows: list[Row] = [
        {"who": who, "trial": float(trial), "error": base + shift}
        for trial, base in enumerate((1.0, 5.0, 9.0))
        for who, shift in (("ours", -0.5), ("theirs", 0.01 * trial))
    ]
    gap, spread = paired_difference(rows, "error", {"who": "ours"}, {"who": "theirs"})
    assert gap == pytest.approx(-0.51)
    assert spread == pytest.approx(0.01 / np.sqrt(3))
    assert smaller(gap, spread) == "holds"
    assert smaller(-gap, spread) == "fails"
    assert smaller(gap, 0.3) == smaller(-gap, 0.3) == "cannot tell"
    assert smaller(*paired_difference(rows[:2], "error", {"who": "ours"}, {"who": "theirs"})) == "cannot tell"


def test_ratings_that_were_given_are_kept_and_the_others_are_likely_half_stars() -> None:
    rng = np.random.default_rng(1)
    given = np.where(rng.random((30, 40)) < 0.3, np.clip(np.rint(2 * rng.normal(3.5, 1, (30, 40))) / 2, 0.5, 5), np.nan)
    whole = impute_ratings(given, rng)
    known = np.isfinite(given)
    assert np.array_equal(whole[known], given[known])
    assert set(np.unique(2 * whole)) <= set(range(1, 11))
    assert whole[~known].mean() == pytest.approx(given[known].mean(), abs=0.3)


def test_the_page_names_what_was_left_out() -> None:
    text = page([{"id": "sun-fig1", "claims": [], "files": [], "left_out": "no data"}])
    assert "sun-fig1 (left out: no data)" in text
