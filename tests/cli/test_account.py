"""`crowdveil account` adds up spends per worker, unit and rule, and says which row is wrong."""

from __future__ import annotations

import csv
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.run import crowdveil

HEADER = ["worker", "study", "mechanism", "parameters", "count"]
FIVE_ARY = {"epsilon": 0.25, "options": 5}


def write(path: Path, rows: list[tuple[Any, ...]], header: list[str] = HEADER) -> Path:
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows([*(json.dumps(cell) if isinstance(cell, dict) else cell for cell in row)] for row in rows)
    return path


def account(path: Path, *arguments: object) -> dict[str, Any]:
    done = crowdveil("account", path, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_every_rule_in_every_unit(tmp_path: Path) -> None:
    path = write(tmp_path / "spends.csv", [("ada", "s", "randomized-response", FIVE_ARY, 23)])
    ada = account(path)["workers"]["ada"]
    assert ada["value"]["basic"] == {"epsilon": pytest.approx(5.75, abs=1e-6), "delta": 0}
    assert ada["value"]["zcdp"] == {"epsilon": pytest.approx(3.986, abs=1e-3), "delta": 1e-6}
    assert ada["value"]["pld"]["epsilon"] < ada["value"]["renyi"]["epsilon"] < ada["value"]["zcdp"]["epsilon"]
    assert ada["cell"]["basic"]["epsilon"] == "inf"
    assert ada["vector"] == ada["value"]


def test_a_hundred_of_lokis_ratings(tmp_path: Path) -> None:
    rows = [(f"g{sigma}", "s", "gaussian", {"sigma": sigma, "scale": "1:5"}, 100) for sigma in (3, 6, 12)]
    workers = account(write(tmp_path / "spends.csv", rows), "--delta", 1e-5)["workers"]
    found = [workers[f"g{sigma}"]["value"]["pld"]["epsilon"] for sigma in (3, 6, 12)]
    assert found == pytest.approx([144.9, 49.9, 19.1], rel=0.005)


def test_two_layer_follows_its_joint_law_across_studies(tmp_path: Path) -> None:
    parameters = {"low": 0, "high": 1, "options": 2}
    rows = [("ada", "s1", "two-layer", parameters, 8), ("ada", "s2", "two-layer", parameters, 12)]
    ada = account(write(tmp_path / "spends.csv", rows))["workers"]["ada"]
    assert ada["value"]["basic"]["epsilon"] == pytest.approx(math.log(20))
    assert ada["vector"]["basic"]["epsilon"] == pytest.approx(math.log(math.comb(20, 10)))


@pytest.mark.parametrize("named", [False, True])
def test_two_layer_shares_its_secret_between_questions_with_other_options(tmp_path: Path, named: bool) -> None:
    """Enumerated: every vector of reports, for one answer with two options and three with three."""
    sizes = (2, 3, 3, 3)
    rows = [("ada", "s", "two-layer", {"low": 0, "high": 1, "options": size}, 1) for size in sizes]
    header = [*HEADER, "question"] if named else HEADER
    cells = [(*row, f"q{number}") for number, row in enumerate(rows)] if named else rows
    ada = account(write(tmp_path / "spends.csv", cells, header))["workers"]["ada"]

    def chance(flips: tuple[int, ...]) -> Fraction:
        k, d = len(flips), sum(flips)
        weight = math.prod(Fraction(1, size - 1) ** flip for size, flip in zip(sizes, flips, strict=True))
        return weight * Fraction(1, (k + 1) * math.comb(k, d))

    laws = {flips: chance(flips) for flips in itertools.product((0, 1), repeat=len(sizes))}
    near = [
        abs(math.log(laws[flips] / laws[(*flips[:place], 1 - flips[place], *flips[place + 1 :])]))
        for flips in laws
        for place in range(len(sizes))
    ]
    assert ada["value"]["basic"]["epsilon"] == pytest.approx(max(near))
    assert ada["vector"]["basic"]["epsilon"] >= math.log(max(laws.values()) / min(laws.values())) - 1e-12


def test_naming_questions_hides_nothing_that_their_answers_share(tmp_path: Path) -> None:
    parameters = {"low": 0, "high": 1, "options": 2}
    rows = [("ada", "s", "two-layer", parameters, 1, f"q{number}") for number in range(20)]
    rows += [("bob", "s", "matrix-factorization", {"epsilon": 1, "scale": "0:9"}, 10, "q1")]
    rows += [("bob", "s", "randomized-response", {"epsilon": 2}, 1, "q2")]
    workers = account(write(tmp_path / "spends.csv", rows, [*HEADER, "question"]))["workers"]
    assert workers["ada"]["value"]["basic"]["epsilon"] == pytest.approx(math.log(20))
    assert workers["ada"]["vector"]["basic"]["epsilon"] == pytest.approx(math.log(math.comb(20, 10)))
    assert workers["bob"]["value"]["basic"]["epsilon"] == 3


def test_numbers_without_measure_end_in_a_bound(tmp_path: Path) -> None:
    rows = [
        ("ada", "s", "randomized-response", {"epsilon": 1, "options": 3}, 10**12),
        ("bob", "s", "two-layer", {"low": 0, "high": 1, "options": 2}, 10**6),
    ]
    workers = account(write(tmp_path / "spends.csv", rows))["workers"]
    assert workers["ada"]["vector"]["pld"]["epsilon"] == workers["ada"]["vector"]["basic"]["epsilon"]
    assert workers["ada"]["vector"]["basic"]["epsilon"] == pytest.approx(1e12)
    assert math.log(1e6) <= workers["bob"]["value"]["basic"]["epsilon"] < 1.01 * math.log(1e6)


def test_protected_participation_has_a_cell_total(tmp_path: Path) -> None:
    parameters = {"epsilon": 1, "scale": "1:5", "protect_participation": True}
    path = write(tmp_path / "spends.csv", [("ada", "s", "randomized-response", parameters, 4)])
    assert account(path)["workers"]["ada"]["cell"]["basic"]["epsilon"] == pytest.approx(4, abs=1e-6)


def test_named_questions_give_the_worst_of_them(tmp_path: Path) -> None:
    rows = [
        ("ada", "s1", "randomized-response", {"epsilon": 1}, 1, "q1"),
        ("ada", "s2", "randomized-response", {"epsilon": 2}, 1, "q1"),
        ("ada", "s1", "randomized-response", {"epsilon": 1}, 1, "q2"),
    ]
    ada = account(write(tmp_path / "spends.csv", rows, [*HEADER, "question"]))["workers"]["ada"]
    assert ada["value"]["basic"]["epsilon"] == 3
    assert ada["vector"]["basic"]["epsilon"] == 4


def test_two_releases_of_a_factorisation_are_two(tmp_path: Path) -> None:
    parameters = {"epsilon": 1, "scale": "0:9"}
    rows = [("ada", study, "matrix-factorization", parameters, 10) for study in ("s1", "s2")]
    ada = account(write(tmp_path / "spends.csv", rows))["workers"]["ada"]
    assert (ada["value"]["basic"]["epsilon"], ada["vector"]["basic"]["epsilon"]) == (2, 20)


def test_unprotected_answers_are_listed_and_not_summed(tmp_path: Path) -> None:
    rows = [("ada", "weather", "none", {"options": 2}, 3), ("ada", "health", "randomized-response", {"epsilon": 1}, 1)]
    path = write(tmp_path / "spends.csv", rows)
    result = account(path)
    assert result["workers"]["ada"]["value"]["basic"]["epsilon"] == 1
    assert result["unprotected"] == {"ada": {"weather: none": 3}}
    assert "not protected, and not in these numbers: weather: none (3)" in crowdveil("account", path).stdout


def test_parquet_is_read_too(tmp_path: Path) -> None:
    table = pa.table(
        {
            "worker": ["ada"],
            "study": ["s"],
            "mechanism": ["randomized-response"],
            "parameters": [json.dumps(FIVE_ARY)],
            "count": [4],
        }
    )
    pq.write_table(table, tmp_path / "spends.parquet")
    assert account(tmp_path / "spends.parquet")["workers"]["ada"]["value"]["basic"]["epsilon"] == pytest.approx(1)


def test_the_domain_only_ever_lowers_the_loss(tmp_path: Path) -> None:
    rows = [
        ("bare", "s", "randomized-response", {"epsilon": 0.5}, 30),
        ("list", "s", "randomized-response", {"epsilon": 0.5, "options": list("abc")}, 30),
        ("text", "s", "randomized-response", {"epsilon": 0.5, "options": "a,b,c"}, 30),
    ]
    workers = account(write(tmp_path / "spends.csv", rows))["workers"]
    assert workers["list"] == workers["text"]
    assert workers["list"]["value"]["pld"]["epsilon"] < workers["bare"]["value"]["pld"]["epsilon"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("", "s", "none", {}, 1), "row 2, column 'worker'"),
        (("a", "s", "magic", {}, 1), "column 'mechanism': mechanism must be one of"),
        (("a", "s", "randomized-response", "{epsilon}", 1), "column 'parameters': parameters must be JSON"),
        (("a", "s", "randomized-response", "[1]", 1), "parameters must be a JSON object"),
        (("a", "s", "randomized-response", {}, 1), "parameters must hold epsilon"),
        (("a", "s", "randomized-response", {"epsilon": -1}, 1), "epsilon must be a positive finite number; got -1"),
        (("a", "s", "randomized-response", {"epsilon": "x"}, 1), "epsilon must be a number"),
        (("a", "s", "randomized-response", {"epsilon": "x", "options": 2}, 1), "epsilon"),
        (("a", "s", "randomized-response", {"epsilon": 1, "options": 2, "scale": "1:5"}, 1), "got both"),
        (("a", "s", "gaussian", {"sigma": 3}, 1), "must say what may be answered"),
        (("a", "s", "none", {}, 0), "column 'count': count must be a whole number"),
        (("a", "s", "none", {}, "many"), "column 'count': count must be a whole number"),
        (("a", "s", "laplace", {"epsilon": 1, "options": ["a", "b"]}, 1), "numbers"),
        (("a", "s", "randomized-response", {"epsilon": 1, "scale": [1]}, 1), "scale"),
        (("a", "s", "randomized-response", {"epsilon": 1, "options": 0}, 1), "option"),
        (("a", "s", "randomized-response", {"epsilon": 1, "options": "3"}, 1), "two options or more; got only '3'"),
        (("a", "s", "randomized-response", {"epsilon": 1, "options": 3.0}, 1), "options must be a list"),
        (("a", "s", "randomized-response", {"epsilon": 1, "options": 10**11}, 1), "options must be a list"),
        (("a", "s", "randomized-response", {"epsilon": 1, "scale": "0:1:1e-99"}, 1), "step of a scale"),
        (("a", "s", "randomized-response", {"epsilon": 10**400}, 1), "epsilon must be a positive finite number"),
        (("a", "s", "randomized-response", {"epsilon": 1e308}, 10), "epsilon must be 0 or more, and below"),
        (("a", "s", "randomized-response", '{"epsilon": 8, "epsilon": 1}', 1), "got a name twice"),
        (("a", "s", "randomized-response", "[" * 100_000, 1), "too deep"),
        (("a", "s", "gaussian", {"sigma": 1e-8, "scale": "1:5"}, 1), "noise of a Gaussian release"),
        (
            ("a", "s", "gaussian", {"sigma": 1e-300, "scale": "1:5"}, 1),
            "sigma must be a positive number of ordinary size",
        ),
        (("a", "s", "two-layer", {"epsilon": 1000, "options": 2}, 1), "epsilon must be from 0 to 700"),
        (("a", "s", "none", {}, "9" * 5000), "column 'count': count must be a whole number"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, row: tuple[Any, ...], said: str) -> None:
    done = crowdveil("account", write(tmp_path / "spends.csv", [row]))
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    assert said in done.stderr
    assert "row 2" in done.stderr
    assert done.stderr.count("\n") == 1


def test_missing_files_columns_and_deltas_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "spends.csv", [("ada", "s")], ["worker", "study"])
    assert "'mechanism' is missing" in crowdveil("account", path).stderr
    assert "does not exist" in crowdveil("account", tmp_path / "nothing.csv").stderr
    path = write(tmp_path / "spends.csv", [("ada", "s", "none", {}, 1)])
    assert "delta must be above 0" in crowdveil("account", path, "--delta", 0).stderr
