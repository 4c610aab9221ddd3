"""`crowdveil audit` tells what was found, and its exit code tells whether a claim was exceeded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.run import crowdveil

from crowdveil.mechanisms import MECHANISMS


def test_all_mechanisms_in_one_table_and_research_does_not_fail() -> None:
    done = crowdveil("audit", "--all", "--epsilon", 1, "--scale", "1:5", "--samples", 2000, "--json", "--seed", 1)
    rows = {row["mechanism"]: row for row in json.loads(done.stdout)["rows"]}
    assert done.returncode == 0
    assert list(rows) == list(MECHANISMS)
    assert all(row["verdict"] == "holds" for row in rows.values() if not row["research_only"])
    assert rows["two-layer"]["verdict"] == "exceeds"
    assert rows["none"]["claimed"] == rows["none"]["exact"] == "inf"
    wanted = {"mechanism", "unit", "claimed", "exact", "lower_bound", "verdict", "research_only"}
    assert all(wanted <= set(row) for row in rows.values())


def test_people_get_a_table() -> None:
    done = crowdveil("audit", "randomized-response", "--epsilon", 0.5, "--options", "no,yes")
    head, row, *_ = done.stdout.splitlines()
    assert head.split()[:3] == ["mechanism", "unit", "claimed"]
    assert row.split()[:4] == ["randomized-response", "value", "0.5", "0.5"]
    assert done.returncode == 0


def test_matrix_factorisation_is_caught() -> None:
    done = crowdveil(
        *("audit", "matrix-factorization", "--epsilon", 1, "--scale", "0:9", "--protect-participation"),
        *("--samples", 8000, "--seed", 2, "--json"),
    )
    (row,) = json.loads(done.stdout)["rows"]
    assert done.returncode == 1
    assert row["lower_bound"] >= 3
    assert (row["unit"], row["verdict"], row["exact"]) == ("cell", "exceeds", None)
    assert done.stderr.startswith("crowdveil: matrix-factorization claims ε 1 per cell but has at least ε")


@pytest.mark.parametrize(
    ("parameter", "why"),
    [("paper_scale=true", "but has at least ε"), ("paper_scale=false", "reports' last digits tell")],
)
def test_the_papers_laplace_is_caught(parameter: str, why: str) -> None:
    arguments = ("laplace", "--epsilon", 1, "--scale", "0:100:50", "--param", parameter, "--seed", 3)
    done = crowdveil("audit", *arguments)
    assert done.returncode == 1
    assert why in done.stderr


def test_no_privacy_does_not_pass_for_some() -> None:
    done = crowdveil("audit", "none", "--epsilon", 1)
    assert done.returncode == 1
    assert "none claims ε 1 per value but has ε ∞" in done.stderr
    assert crowdveil("audit", "none").returncode == 0


def test_own_code_is_found_in_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "leaky_report.py").write_text("def report(answer):\n    return answer\n")
    arguments = ("leaky_report:report", "--options", "no,yes", "--epsilon", 1, "--samples", 2000)
    done = crowdveil("audit", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert "leaky_report:report claims ε 1 per value" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name one mechanism or module:callable"),
        (("--all", "none"), "name one mechanism or module:callable"),
        (("nothing-like-that",), "mechanism must be one of"),
        (("os:nothing", "--options", "a,b", "--epsilon", 1), "cannot be imported"),
        (("os:getcwd", "--options", "a,b"), "the claim to check is missing"),
        (("os:getcwd", "--epsilon", 1), "needs to know what may be answered"),
        (("os:getcwd", "--epsilon", 1, "--options", "a,b"), "failed on the answer"),
        (("--all", "--param", "a=b"), "--param belongs to one mechanism"),
        (("laplace", "--samples", 7), "at least 100 samples"),
        (("--all", "--epsilon", -1), "epsilon must be a positive finite number"),
        (("randomized-response", "--epsilon", 0), "epsilon must be a positive finite number"),
        (("randomized-response", "--epsilon", 1e308), "epsilon must be from 1e-100 to 700"),
        (("randomized-response", "--epsilon", 1e-300), "epsilon must be from 1e-100 to 700"),
        (("randomized-response", "--epsilon", 1e-30), "cannot keep ε 1e-30"),
        (("randomized-response", "--param", "epsilon=[1]"), "epsilon must be a number; got [1]"),
        (("gaussian", "--param", "sigma=1e-300"), "sigma must be a positive number of ordinary size"),
        (("math:cos", "--epsilon", 1, "--scale", "1:5", "--delta", "nan"), "δ of a claim must be from 0"),
    ],
)
def test_bad_questions_get_one_sentence(arguments: tuple[object, ...], said: str) -> None:
    done = crowdveil("audit", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
