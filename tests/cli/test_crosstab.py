"""`crowdveil crosstab`: what it prints, what it writes and what it refuses."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from cli.run import crowdveil, crowdveil_json

PAIRS = ["no,no"] * 10 + ["no,yes"] * 20 + ["yes,no"] * 30 + ["yes,yes"] * 40


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.csv"
    rows = [(n, *pair.split(",")) for n, pair in enumerate(PAIRS)]
    lines = [f"w{n},a,{first}\nw{n},b,{second}\n" for n, first, second in rows]
    path.write_text("worker,question,answer\n" + "".join(lines))
    return path


def test_json_holds_every_cell_with_its_intervals(answers: Path) -> None:
    result = crowdveil_json("crosstab", answers, "--rows", "a", "--columns", "b", "--compare", "yes,no")
    assert result["n_workers"] == 100
    assert [cell["share"] for cell in result["cells"]] == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=1e-5)
    assert all(0 <= cell["low"] <= cell["share"] <= cell["high"] <= 1 for cell in result["cells"])
    assert result["differences"][1]["estimate"] == pytest.approx(4 / 7 - 2 / 3, abs=1e-4)
    assert result["guarantees"][0]["protected"] is False


def test_cells_are_written_as_a_table(answers: Path, tmp_path: Path) -> None:
    output = tmp_path / "cells.csv"
    done = crowdveil("crosstab", answers, "--rows", "a", "--columns", "b", "-o", output)
    assert done.returncode == 0, done.stderr
    assert "40 % (31 to 50)" in done.stdout
    with output.open() as stream:
        cells = list(csv.DictReader(stream))
    assert [(cell["row"], cell["column"]) for cell in cells] == [
        ("no", "no"), ("no", "yes"), ("yes", "no"), ("yes", "yes")
    ]  # fmt: skip
    again = crowdveil("crosstab", answers, "--rows", "a", "--columns", "b", "-o", output)
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_a_column_question_with_other_options_stands_in_its_own_file(answers: Path, tmp_path: Path) -> None:
    other = tmp_path / "mood.csv"
    moods = ["low", "fair", "good"]
    other.write_text("worker,question,answer\n" + "".join(f"w{n},mood,{moods[n % 3]}\n" for n in range(90)))
    result = crowdveil_json("crosstab", answers, "--rows", "a", "--columns", "mood", "--column-reports", other)
    assert result["n_workers"] == 90
    assert [line["estimate"] for line in result["column_shares"]] == pytest.approx([1 / 3] * 3, abs=1e-4)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--rows", "a", "--columns", "c"], "no report about the question 'c'"),
        (["--rows", "a", "--columns", "a"], "must be two questions"),
        (["--rows", "a", "--columns", "b", "--compare", "yes"], "--compare must be two groups"),
        (["--rows", "a", "--columns", "b", "--compare", "yes,maybe"], "'maybe' is no option of 'a'"),
    ],
)
def test_refusals_are_one_sentence(answers: Path, words: list[str], problem: str) -> None:
    done = crowdveil("crosstab", answers, *words)
    assert done.returncode == 2
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1
