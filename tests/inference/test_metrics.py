"""Scores of posteriors against truths, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crowdveil import Answers, Choices, Reports, Scale
from crowdveil.errors import InputError
from crowdveil.estimate import Estimate
from crowdveil.inference import method
from crowdveil.inference.metrics import brier_score, entropy, log_loss, reliability_table

TRUTH = {"q1": "a", "q2": "b", "q3": "b", "q4": "a"}


def estimate_of(posterior: list[list[float]]) -> Estimate:
    rows = np.array(posterior)
    value, top = rows.argmax(axis=1), rows.max(axis=1)
    names = np.array([f"q{n + 1}" for n in range(len(rows))])
    return Estimate("by hand", Choices(("a", "b")), names, value, top, top, top, rows)


ESTIMATE = estimate_of([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.65, 0.35]])


def test_brier_score_is_the_squared_distance_from_the_truth() -> None:
    by_hand = 2 * (0.1**2 + 0.2**2 + 0.7**2 + 0.35**2) / 4
    assert brier_score(ESTIMATE, TRUTH) == pytest.approx(by_hand)
    assert brier_score(estimate_of([[1.0, 0.0]]), TRUTH) == 0
    assert brier_score(estimate_of([[0.0, 1.0]]), TRUTH) == 2


def test_log_loss_is_the_mean_negative_logarithm_of_the_truth() -> None:
    by_hand = -(math.log(0.9) + math.log(0.8) + math.log(0.3) + math.log(0.65)) / 4
    assert log_loss(ESTIMATE, TRUTH) == pytest.approx(by_hand)
    assert log_loss(estimate_of([[1.0, 0.0]]), TRUTH) == 0
    assert log_loss(estimate_of([[0.0, 1.0]]), TRUTH) == math.inf
    assert log_loss(ESTIMATE, {"q1": "no option"}) == math.inf


def test_reliability_table_compares_confidence_with_accuracy() -> None:
    table = reliability_table(ESTIMATE, TRUTH, n_bins=2)
    assert table.count.tolist() == [0, 4]
    assert np.isnan(table.confidence[0])
    assert table.confidence[1] == pytest.approx((0.9 + 0.8 + 0.7 + 0.65) / 4)
    assert table.accuracy[1] == 0.75
    assert table.calibration_error == pytest.approx(0.7625 - 0.75)
    fine = reliability_table(ESTIMATE, TRUTH, n_bins=20)
    # Each value has a bin of its own: |.9 − 1|, |.8 − 1|, |.7 − 0|, |.65 − 1|.
    assert fine.calibration_error == pytest.approx((0.1 + 0.2 + 0.7 + 0.35) / 4)
    with pytest.raises(InputError, match="n_bins"):
        reliability_table(ESTIMATE, TRUTH, n_bins=0)


def test_entropy_is_zero_for_certainty_and_largest_for_equal_chances() -> None:
    found = entropy(estimate_of([[1.0, 0.0], [0.5, 0.5]]))
    assert found.tolist() == pytest.approx([0.0, math.log(2)])


def test_numbers_have_no_posterior_to_score() -> None:
    rows = [("ada", "q1", "3"), ("bob", "q1", "4")]
    mean = method("mean").fit(Reports.unprotected(Answers.from_rows(rows, Scale(1, 5))))
    for metric in (brier_score, log_loss):
        with pytest.raises(InputError, match="no posterior"):
            metric(mean, {"q1": "3"})
    with pytest.raises(InputError, match="no posterior"):
        entropy(mean)
