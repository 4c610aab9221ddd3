"""`crowdveil simulate`: the files it writes can be read by the other commands, and it refuses in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.run import crowdveil, crowdveil_json

from crowdveil.files import load_dataset, read_answers, read_truth


def test_a_folder_is_a_dataset(tmp_path: Path) -> None:
    said = crowdveil_json("simulate", "--preset", "li-peer-grading", "--seed", "1", "-o", str(tmp_path / "peers"))
    answers, truth = load_dataset("peers", folder=tmp_path)
    assert said["n_answers"] == len(answers) == 360
    assert len(truth) == said["n_questions"] == 26


def test_a_file_has_its_truth_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "crowd.parquet"
    said = crowdveil_json("simulate", "--scale", "0:4", "--workers", "12", "--share", "1", "-o", str(path))
    assert len(read_answers(path)) == said["n_answers"] == 12 * 50
    assert len(read_truth(said["files"]["truth"])) == 50


def test_numbers_of_a_preset_can_be_replaced(tmp_path: Path) -> None:
    changed = ("--workers", "30", "--questions", "10", "--param", 'truth="uniform"', "--param", "sigmas=[0]")
    crowdveil_json("simulate", "--preset", "sun", "--share", "1", *changed, "-o", str(tmp_path / "crowd"))
    answers, truth = load_dataset("crowd", folder=tmp_path)
    assert len(answers) == 300
    assert all(0 <= float(text) <= 9 for text in truth.values())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--preset", "nobody"), "preset must be one of sun"),
        ((), "say which crowd to make up"),
        (("--options", "a,b", "--param", "sigmas=[1]"), "this crowd has the parameters"),
        (("--options", "a,b", "--param", "ability=[0.5]"), "must be a list of 2: a number, a number; got (0.5,)"),
        (("--scale", "1:5", "--param", "sigmas=1"), "must be a list: a number, …; got 1"),
        (("--preset", "sun", "--share", "2"), "share must be above 0"),
    ],
)
def test_what_cannot_be_made_up_is_refused(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = crowdveil("simulate", *arguments, "-o", str(tmp_path / "crowd"))
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "crowd").exists()


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    arguments = ("simulate", "--options", "a,b", "-o", str(tmp_path / "crowd"))
    assert crowdveil(*arguments).returncode == 0
    assert crowdveil(*arguments).returncode == 2
    assert crowdveil(*arguments, "--force").returncode == 0
