"""`crowdveil infer` and `crowdveil methods`, as scripts rely on them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from cli.run import crowdveil, crowdveil_json
from inference.crowds import choice_crowd, number_crowd, protected

from crowdveil.cli._common import estimate_json
from crowdveil.files import write_answers, write_reports
from crowdveil.inference import METHODS, ChannelBP


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A folder with answers and truths of 200 questions."""
    answers, truth = choice_crowd(1)
    write_answers(tmp_path / "answers.csv", answers)
    lines = [f"{question},option {code}" for question, code in enumerate(truth)]
    (tmp_path / "truth.csv").write_text("\n".join(["question,truth", *lines]) + "\n", encoding="utf-8")
    return tmp_path


def test_the_json_contract(study: Path) -> None:
    result = crowdveil_json(
        "infer", "answers.csv", "-o", "e.csv", "--method", "dawid-skene", "--truth", "truth.csv", cwd=study
    )
    assert result["method"] == "dawid-skene"
    assert result["engine"] == "local"
    assert (result["n_reports"], result["n_questions"], result["n_workers"]) == (1600, 200, 40)
    assert result["iterations"] > 1
    assert result["converged"] is True
    assert result["warnings"] == []
    assert result["class_explanation_weight"] is None
    assert 0 < result["posterior_power"] <= 1
    assert result["metrics"]["accuracy"] > result["baselines"]["best constant"]["accuracy"]
    assert set(result["metrics"]) == {"accuracy", "f1"}
    assert set(result["baselines"]) == {"best constant", "majority"}


def test_the_json_says_how_much_is_due_to_classes() -> None:
    reports = protected(choice_crowd(1)[0], 2.0, 1)
    estimate = ChannelBP().fit(reports)
    result = estimate_json(estimate, estimate.provenance, reports.channels, "local")
    assert result["class_explanation_weight"] == estimate.parameters["class_explanation_weight"][0]
    assert 0 < result["class_explanation_weight"] < 1
    assert result["posterior_power"] == estimate.provenance["posterior_power"]


def test_numbers_are_scored_by_distance(tmp_path: Path) -> None:
    answers, truth = number_crowd(2)
    write_answers(tmp_path / "answers.csv", answers)
    lines = [f"{question},{value}" for question, value in enumerate(truth)]
    (tmp_path / "truth.csv").write_text("\n".join(["question,truth", *lines]) + "\n", encoding="utf-8")
    result = crowdveil_json(
        "infer", "answers.csv", "-o", "e.parquet", "--method", "weighted-mean", "--truth", "truth.csv",
        "--scale", "0:20", cwd=tmp_path,
    )  # fmt: skip
    assert set(result["metrics"]) == {"mae", "rmse"}
    assert set(result["baselines"]) == {"best constant", "mid-level", "mean"}
    assert result["metrics"]["mae"] < result["baselines"]["best constant"]["mae"]


def test_people_see_the_baselines_and_that_nothing_is_protected(study: Path) -> None:
    done = crowdveil("infer", "answers.csv", "-o", "e.csv", "--method", "majority", "--truth", "truth.csv", cwd=study)
    assert done.returncode == 0
    assert "not protected" in done.stdout
    assert "best constant" in done.stdout
    assert not (study / "e.csv.start.npz").exists()


def test_a_warm_start_from_the_file_takes_fewer_iterations(study: Path) -> None:
    arguments = ("infer", "answers.csv", "--method", "dawid-skene")
    cold = crowdveil_json(*arguments, "-o", "cold.csv", "--workers-out", "w.csv", cwd=study)
    warm = crowdveil_json(*arguments, "-o", "warm.csv", "--start", "cold.csv", cwd=study)
    assert warm["iterations"] < cold["iterations"]
    values = [[row["value"] for row in rows_of(study / name)] for name in ("cold.csv", "warm.csv")]
    assert values[0] == values[1]
    assert (study / "w.csv").read_text(encoding="utf-8").startswith("worker,skill,low,high")


def test_reports_are_read_through_their_channels(study: Path) -> None:
    answers, _ = choice_crowd(1)
    write_reports(study / "reports.csv", protected(answers, 2.0, 1))
    result = crowdveil_json(
        "infer", "reports.csv", "-o", "e.csv", "--method", "dawid-skene", "--truth", "truth.csv", cwd=study
    )
    assert result["protected"] is True
    assert result["metrics"]["accuracy"] > 0.7


def test_gold_is_used(study: Path) -> None:
    gold = (study / "truth.csv").read_text(encoding="utf-8").splitlines()[:50]
    (study / "gold.csv").write_text("\n".join(gold) + "\n", encoding="utf-8")
    crowdveil_json("infer", "answers.csv", "-o", "e.csv", "--method", "one-coin", "--gold", "gold.csv", cwd=study)
    found = {row["question"]: row["value"] for row in rows_of(study / "e.csv")}
    assert all(found[question] == truth for question, truth in (line.split(",") for line in gold[1:]))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--method", "oracle"), "method must be one of"),
        (("--method", "majority", "--engine", "moon"), "--engine must be local or spark"),
        (("--method", "majority", "--gold", "truth.csv"), "takes no gold questions"),
        (("--method", "dawid-skene", "--param", "max_iter"), "--param must be name=value"),
        (("--method", "dawid-skene", "--param", "depth=3"), "has the parameters"),
        (("--method", "one-coin", "--param", "classes=learnt"), "must be even or learned; got 'learnt'"),
        (("--method", "dawid-skene", "--param", "tol=small"), "must be a number; got 'small'"),
        (("--method", "dawid-skene", "--param", "gold=3"), "--param cannot say what gold is; use --gold"),
        (("--method", "channel-bp", "--param", "engine=3"), "--param cannot say what engine is; use --engine"),
        (("--method", "majority", "--workers-out", "w.csv"), "learns no skills"),
        (("--method", "mean"), "needs numbers"),
        (("--method", "majority", "--start", "none.csv"), "to start from"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    study: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    done = crowdveil("infer", "answers.csv", "-o", "e.csv", *arguments, cwd=study)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in study.iterdir()) == ["answers.csv", "truth.csv"]


def test_estimates_are_not_overwritten_unasked(study: Path) -> None:
    (study / "e.csv").write_text("precious", encoding="utf-8")
    done = crowdveil("infer", "answers.csv", "-o", "e.csv", "--method", "majority", cwd=study)
    assert done.returncode == 2
    assert (study / "e.csv").read_text(encoding="utf-8") == "precious"
    assert (
        crowdveil("infer", "answers.csv", "-o", "e.csv", "--method", "majority", "--force", cwd=study).returncode == 0
    )


def test_every_method_is_listed_and_described() -> None:
    listed = crowdveil_json("methods")["methods"]
    assert [row["name"] for row in listed] == list(METHODS)
    for name in METHODS:
        assert crowdveil_json("methods", name)["summary"]
    assert "--param precision=auto" in crowdveil("methods", "dawid-skene").stdout
    assert crowdveil("methods", "oracle").returncode == 2


def test_without_a_method_one_is_chosen_and_named(study: Path) -> None:
    result = crowdveil_json("infer", "answers.csv", "-o", "e.csv", cwd=study)
    assert result["method"] in METHODS
    assert any(warning.startswith("auto chose") for warning in result["warnings"])
