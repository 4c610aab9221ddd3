"""`crowdveil select`: the JSON contract, and refusals in one sentence."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from cli.run import crowdveil, crowdveil_json

from crowdveil import Answers, Scale, entropy_from
from crowdveil.files import write_reports
from crowdveil.mechanisms import mechanism
from crowdveil.selection import POLICIES


@pytest.fixture
def past(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    rows = [(f"w{i}", f"q{j}", int(np.clip(round(rng.normal(3, 1)), 1, 5))) for i in range(12) for j in range(8)]
    reports = mechanism("randomized-response", epsilon=2).randomize(
        Answers.from_rows(rows, Scale(1, 5)), entropy_from(7)
    )
    path = tmp_path / "past.csv"
    write_reports(path, reports)
    return path


@pytest.fixture
def workers(tmp_path: Path) -> Path:
    rows = [f"w{i},low,0.5,1.0,{3.0 if i != 4 else 0.5}" for i in range(12)]
    path = tmp_path / "workers.csv"
    path.write_text("worker,level,pay,epsilon,remaining\n" + "\n".join([*rows, "new,none,0.5,,"]) + "\n")
    return path


@pytest.mark.parametrize(
    ("policy", "fairness"), [*((name, "0") for name in POLICIES), ("greedy", "1"), ("budgeted-greedy", "1")]
)
def test_json_names_who_is_chosen_and_why(past: Path, workers: Path, policy: str, fairness: str) -> None:
    asked = ["select", past, "--workers", workers, "--budget", 100]
    result = crowdveil_json(*asked, "--policy", policy, "--fairness", fairness)
    assert {"chosen", "cost", "expected_rmse", "stopped_because"} <= set(result)
    assert "w4" not in result["chosen"]
    assert result["cost"] == pytest.approx(0.5 * len(result["chosen"]))
    assert math.isfinite(result["expected_rmse"])


def test_people_read_sentences(past: Path, workers: Path) -> None:
    done = crowdveil("select", past, "--workers", workers, "--budget", 2)
    assert done.returncode == 0
    assert "stopped because" in done.stdout


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "greedy"])
def test_the_error_is_said_to_be_that_of_the_estimator_that_a_broker_uses(
    past: Path, workers: Path, policy: str
) -> None:
    asked = ["select", past, "--workers", workers, "--budget", 2, "--policy", policy]
    done, result = crowdveil(*asked), crowdveil_json(*asked)
    assert "the error of the inverse-variance mean" in done.stdout
    assert result["estimator"] == "inverse-variance mean"
    assert "population-mean" in result["note"]


def test_greedy_says_that_its_error_is_that_of_the_plain_mean(past: Path, workers: Path) -> None:
    asked = ["select", past, "--workers", workers, "--budget", 2, "--policy", "greedy"]
    done, result = crowdveil(*asked), crowdveil_json(*asked)
    assert "the error of the plain mean" in done.stdout
    assert result["estimator"] == "plain mean"
    assert "weigh ratings by inverse variance" in result["note"]


@pytest.mark.parametrize(("policy", "estimator"), [("budgeted-greedy", "frequency"), ("greedy", "plain mean")])
def test_on_choices_the_error_is_that_of_frequency(tmp_path: Path, workers: Path, policy: str, estimator: str) -> None:
    past = tmp_path / "choices.csv"
    rows = [f"w{i},q{j},{('yes', 'no')[(i + j) % 3 == 0]}" for i in range(12) for j in range(8)]
    past.write_text("\n".join(["worker,question,answer", *rows]) + "\n")
    asked = ["select", past, "--workers", workers, "--budget", 2, "--options", "no,yes", "--policy", policy]
    done = crowdveil(*asked)
    assert f"the error of the {estimator}" in done.stdout
    assert "infer --method frequency" in done.stdout
    assert "inverse" not in done.stdout


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("w0,low,cheap,1,3", "row 2, column 'pay': pay must be a number"),
        ("w0,low,1,,3", "row 2, column 'epsilon'"),
        ("w0,low,1,1,3\nw0,low,1,1,3", "row 3, column 'worker'"),
    ],
)
def test_bad_workers_are_refused_with_their_row(past: Path, tmp_path: Path, row: str, sentence: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"worker,level,pay,epsilon,remaining\n{row}\n")
    done = crowdveil("select", past, "--workers", path, "--budget", 2)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_policy_is_refused(past: Path, workers: Path) -> None:
    done = crowdveil("select", past, "--workers", workers, "--budget", 2, "--policy", "oracle")
    assert done.returncode == 2
    assert "policy must be one of" in done.stderr


@pytest.mark.parametrize("policy", ["random", "best-predictors", "cheapest"])
@pytest.mark.parametrize("setting", [["--paper-mode"], ["--fairness", "0.5"]], ids=" ".join)
def test_a_setting_of_greedy_is_refused_with_other_policies(
    past: Path, workers: Path, policy: str, setting: list[str]
) -> None:
    asked = ["select", past, "--workers", workers, "--budget", 2, *setting]
    done = crowdveil(*asked, "--policy", policy)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{setting[0]} is a setting of the policy" in done.stderr
    assert f"got --policy {policy}" in done.stderr
    assert crowdveil(*asked, "--policy", "greedy").returncode == 0


def test_paper_mode_is_refused_with_the_default_policy(past: Path, workers: Path) -> None:
    done = crowdveil("select", past, "--workers", workers, "--budget", 2, "--paper-mode")
    assert (done.returncode, done.stdout) == (2, "")
    assert "choose --policy greedy" in done.stderr


def test_the_cost_of_exploration_is_shown(past: Path, workers: Path) -> None:
    asked = ["select", past, "--workers", workers, "--budget", 2]
    assert crowdveil_json(*asked)["rmse_without_exploration"] is None
    result = crowdveil_json(*asked, "--exploration", 2)
    assert result["rmse_without_exploration"] == pytest.approx(crowdveil_json(*asked)["expected_rmse"])
    assert "without exploration ±" in crowdveil(*asked, "--exploration", 2).stdout
    refused = crowdveil(*asked, "--exploration", 2, "--policy", "random")
    assert refused.returncode == 2
    assert "--exploration is a setting of the policy budgeted-greedy" in refused.stderr
