"""`crowdveil infer --colluders`: the bound is printed for the method that it is about, and refused elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.run import crowdveil, crowdveil_json


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.csv"
    path.write_text("worker,question,answer\n" + "".join(f"w{n},q,{('no', 'yes')[n % 4 > 0]}\n" for n in range(40)))
    return path


def test_the_most_that_colluders_can_do_is_in_the_result(answers: Path, tmp_path: Path) -> None:
    words = ("infer", answers, "-o", tmp_path / "e.csv", "--method", "frequency", "--colluders", "0.1")
    result = crowdveil_json(*words)["colluders"]
    assert result["share"] == 0.1
    # A share of .25 becomes .9 · .25 + .1 · 1 if all colluders say no, .9 · .25 if none does.
    assert result["largest_shift"] == pytest.approx(0.075)
    shares = {share["option"]: share for share in result["shares"]}
    assert (shares["no"]["low"], shares["no"]["high"]) == pytest.approx((0.225, 0.325))
    done = crowdveil(*words, "--force")
    assert "if 10.0% of the workers collude, they move a share by at most 7.5 points" in done.stdout


def test_colluders_who_can_do_anything_are_said_to(answers: Path, tmp_path: Path) -> None:
    reports = tmp_path / "reports.csv"
    protected = ("--epsilon", 0.3, "--protect-participation", "--options", "no,yes", "--seed", 1)
    done = crowdveil("perturb", answers, "-o", reports, "--mechanism", "randomized-response", *protected)
    assert done.returncode == 0, done.stderr
    done = crowdveil("infer", reports, "-o", tmp_path / "e.csv", "--method", "frequency", "--colluders", "0.3")
    assert "they can make any share they like of" in done.stdout


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--method", "majority", "--colluders", "0.1"], "--colluders bounds the shares of --method frequency"),
        (["--method", "frequency", "--colluders", "1.5"], "above 0 and below 1"),
    ],
)
def test_refusals_are_one_sentence_and_write_nothing(
    answers: Path, tmp_path: Path, words: list[str], problem: str
) -> None:
    done = crowdveil("infer", answers, "-o", tmp_path / "e.csv", *words)
    assert done.returncode == 2
    assert problem in done.stderr
    assert not (tmp_path / "e.csv").exists()
