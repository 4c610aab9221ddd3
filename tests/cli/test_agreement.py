"""`crowdveil agreement`: what it prints and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.run import crowdveil, crowdveil_json

PAIRS = ["yes,yes"] * 20 + ["yes,no"] * 5 + ["no,yes"] * 10 + ["no,no"] * 15


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.csv"
    rows = [(n, *pair.split(",")) for n, pair in enumerate(PAIRS)]
    lines = [f"ada,q{n},{first}\nbob,q{n},{second}\n" for n, first, second in rows]
    path.write_text("worker,question,answer\n" + "".join(lines))
    return path


def test_coefficients_of_a_table_worked_by_hand(answers: Path) -> None:
    """Cohen: (.7 − .5)/(1 − .5); Fleiss: (.7 − p²)/(1 − p²) summed over margins .55, .45."""
    result = crowdveil_json("agreement", answers, "--workers", "ada,bob")
    found = {each["coefficient"]: each["estimate"] for each in result["coefficients"]}
    assert found["Cohen's κ"] == pytest.approx(0.4)
    by_chance = 0.55**2 + 0.45**2
    assert found["Fleiss' κ"] == pytest.approx((0.7 - by_chance) / (1 - by_chance))
    # α has the expected disagreement of n(n − 1) pairs, κ of n².
    assert found["Krippendorff's α, nominal"] == pytest.approx(1 - 0.3 / ((1 - by_chance) * 100 / 99))


def test_scales_have_ordinal_and_interval_alpha(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    rows = [f"w{worker},q{n},{1 + (n + worker // 2) % 5}\n" for n in range(10) for worker in range(3)]
    path.write_text("worker,question,answer\n" + "".join(rows))
    result = crowdveil_json("agreement", path, "--scale", "1:5")
    assert [each["coefficient"] for each in result["coefficients"]][2:] == [
        "Krippendorff's α, ordinal",
        "Krippendorff's α, interval",
    ]


def test_equal_answers_have_no_coefficient(tmp_path: Path) -> None:
    path = tmp_path / "same.csv"
    path.write_text("worker,question,answer\n" + "".join(f"w{w},q{n},yes\n" for n in range(5) for w in range(2)))
    done = crowdveil("agreement", path, "--options", "no,yes")
    assert done.returncode == 0
    assert "undefined: all answers seem to be equal" in done.stdout


@pytest.mark.parametrize("workers", ["ada", "ada,eve", "ada,bob,cy"])
def test_refusals_are_one_sentence(answers: Path, workers: str) -> None:
    done = crowdveil("agreement", answers, "--workers", workers)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
