"""Spark gives what the local engine gives, refuses what it refuses, and leaves nothing on the driver."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyspark
import pytest
from cli.run import crowdveil, crowdveil_json
from engines.crowds import OLD_SPARK, QUICK, assert_same, crowd, mixed, values_here, values_of
from pyspark.sql import SparkSession

from crowdveil import Choices, FileError, InputError, Reports, Scale, entropy_from
from crowdveil.engines.spark import SparkReports, fit_on_spark, open_spark, read_spark, read_spark_start
from crowdveil.files import read_reports, write_answers, write_reports
from crowdveil.inference import METHODS, Method, method
from crowdveil.mechanisms import RandomizedResponse

pytestmark = OLD_SPARK


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = open_spark("local[2]", **QUICK)
    yield session
    session.stop()


ON_SPARK = (
    "majority",
    "weighted-mean",
    "weighted-vote",
    "one-coin",
    "dawid-skene",
    "channel-bp",
    "channel-em",
    "frequency",
    "population-mean",
)
READS_HIDDEN = ("one-coin", "dawid-skene", "channel-bp", "channel-em", "frequency", "population-mean")


def configured(name: str) -> Method:
    """Double precision and a fixed number of iterations."""
    known = {field.name for field in fields(METHODS[name])}  # type: ignore[arg-type]
    wanted: dict[str, object] = {"precision": "float64", "max_iter": 3, "tol": 0.0}
    return method(name, **{key: value for key, value in wanted.items() if key in known})


@pytest.mark.parametrize("name", ON_SPARK)
def test_spark_equals_the_local_engine(spark: SparkSession, tmp_path: Path, name: str) -> None:
    domain = Scale(1, 5) if METHODS[name].numeric else Choices(("a", "b", "c"))
    path = tmp_path / "reports.parquet"
    write_reports(path, mixed(domain, hidden=name in READS_HIDDEN))
    chosen = configured(name)
    here = chosen.fit(read_reports(path))
    there = fit_on_spark(chosen, read_spark(spark, path), tmp_path / "estimates", n_blocks=3)
    assert there.provenance["engine"] == "spark"
    assert there.provenance["n_questions"] == 200
    assert there.warnings == here.warnings[-len(there.warnings) :] if there.warnings else not here.warnings
    if name.startswith("channel"):
        assert there.floor is not None
        assert there.floor.sentence == here.floor.sentence  # type: ignore[union-attr]
    assert_same(values_of(tmp_path / "estimates"), values_here(here))


def test_the_prior_stands_where_reports_cannot_tell_more(spark: SparkSession, tmp_path: Path) -> None:
    domain = Choices(("a", "b", "c"))
    path = tmp_path / "reports.parquet"
    write_reports(path, RandomizedResponse(epsilon=0.001).randomize(crowd(domain, 5), entropy_from(1)))
    here = configured("channel-bp").fit(read_reports(path))
    there = fit_on_spark(configured("channel-bp"), read_spark(spark, path), tmp_path / "estimates")
    assert here.floor is not None
    assert not here.floor.informative
    assert there.warnings == here.warnings
    assert_same(values_of(tmp_path / "estimates"), values_here(here))


def test_the_command_line_runs_on_spark_and_scores(spark: SparkSession, tmp_path: Path) -> None:
    answers = crowd(Choices(("a", "b", "c")), 8)
    path = tmp_path / "answers.csv"
    write_answers(path, answers)
    (tmp_path / "truth.csv").write_text("question,truth\n" + "".join(f"q{n},a\n" for n in range(20)))
    flags = ["--method", "one-coin", "--engine", "spark", "--truth", tmp_path / "truth.csv", "--master", "local[2]"]
    result = crowdveil_json("infer", path, "-o", tmp_path / "out.parquet", *flags)
    local = crowdveil_json("infer", path, "-o", tmp_path / "local.parquet", *flags[:2], *flags[4:6])
    assert result["metrics"] == pytest.approx(local["metrics"])
    assert result["n_reports"] == local["n_reports"] == len(answers)
    again = crowdveil("infer", path, "-o", tmp_path / "out.parquet", *flags)
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_a_warm_start_matches_workers_by_their_ids(spark: SparkSession, tmp_path: Path) -> None:
    domain = Choices(("a", "b", "c"))
    reports = Reports.unprotected(crowd(domain, 9))
    for name, rows in (("old", reports.worker > 20), ("all", reports.worker >= 0)):
        write_reports(tmp_path / f"{name}.parquet", reports.rows(np.flatnonzero(rows)))
    chosen = method("dawid-skene", precision="float64", tol=1e-9)
    fit_on_spark(chosen, read_spark(spark, tmp_path / "old.parquet"), tmp_path / "a", start_out=tmp_path / "start")
    table = read_spark(spark, tmp_path / "all.parquet")
    cold = fit_on_spark(chosen, table, tmp_path / "b")
    start = read_spark_start(spark, tmp_path / "start")
    warm = fit_on_spark(chosen, table, tmp_path / "c", start=start)
    assert warm.iterations < cold.iterations
    one, other = values_of(tmp_path / "b"), values_of(tmp_path / "c")
    assert all(one[question][0] == other[question][0] for question in one)
    with pytest.raises(InputError, match="the start must be of one-coin"):
        fit_on_spark(method("one-coin"), table, tmp_path / "d", start=start)


COLUMNS = "worker string, question string, report string, channel string"
BAD = {
    "null worker": ([(None, "q", "a", "0")], "every row must name its worker"),
    "null question": ([("w", None, "a", "0")], "every row must name its question"),
    "channel out of range": ([("w", "q", "a", "7")], "channel must be from 0 to 0; got '7'"),
    "report": ([("w", "q", "zebra", "0")], "report must be an output of channel 0; got 'zebra'"),
    "duplicate": ([("w", "q", "a", "0"), ("w", "q", "b", "0")], "has answered this question in an earlier row"),
    "empty": ([], "no rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_in_the_same_words(spark: SparkSession, tmp_path: Path, case: str) -> None:
    rows, expected = BAD[case]
    frame = spark.createDataFrame(rows, COLUMNS)
    domain = Choices(("a", "b"))
    table = SparkReports(frame, (RandomizedResponse(epsilon=1).channel(domain),), domain)
    with pytest.raises(FileError, match=expected):
        fit_on_spark(method("majority"), table, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_method_that_cannot_run_there_names_those_that_can(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("w", "q", "1", "0")], COLUMNS)
    domain = Scale(1, 5)
    table = SparkReports(frame, (RandomizedResponse(epsilon=1).channel(domain),), domain)
    with pytest.raises(InputError, match="use majority"):
        fit_on_spark(method("median"), table, tmp_path / "out")


def test_a_finished_job_is_found_again_but_not_by_another_one(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "reports.parquet"
    write_reports(path, mixed(Choices(("a", "b", "c"))))
    table, work = read_spark(spark, path), f"file://{tmp_path}/work"
    chosen = configured("weighted-vote")
    first = fit_on_spark(chosen, table, tmp_path / "a", work=work)
    before = values_of(tmp_path / "a")
    again = fit_on_spark(chosen, table, tmp_path / "b", work=work, resume=True)
    assert (len(first.trace), len(again.trace)) == (3, 1)
    assert again.iterations == first.iterations
    assert_same(values_of(tmp_path / "b"), before)
    with pytest.raises(InputError, match="another method"):
        fit_on_spark(configured("one-coin"), table, tmp_path / "c", work=work, resume=True)
    with pytest.raises(InputError, match="name it with --work"):
        fit_on_spark(chosen, table, tmp_path / "c", resume=True)


def test_without_java_the_fix_is_named(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("worker,question,answer\nw,q,a\n")
    environment = {"PATH": str(tmp_path), "PYTHONPATH": os.environ["PYTHONPATH"]}
    flags = ["answers.csv", "-o", "out.parquet", "--method", "majority", "--engine", "spark"]
    command = [sys.executable, "-m", "crowdveil", "infer", *flags]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Spark needs Java and none was found; install a Java 17 runtime or use --engine local" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(pyspark.__version__ < "4", reason="the package of Spark 3.5 brings no Connect server along")
def test_the_command_line_runs_through_spark_connect(tmp_path: Path) -> None:
    path = tmp_path / "reports.parquet"
    write_reports(path, mixed(Choices(("a", "b", "c"))))
    # A server of this process on a free port of the loopback address.
    environment = os.environ | {"SPARK_TESTING": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
    settings = ["--method", "weighted-vote", "--param", "max_iter=3", "--param", "tol=0"]
    flags = [str(path), "-o", str(tmp_path / "out.parquet"), *settings, "--engine", "spark", "--remote", "local[2]"]
    command = [sys.executable, "-m", "crowdveil", "infer", *flags]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = method("weighted-vote", max_iter=3, tol=0.0).fit(read_reports(path))
    assert_same(values_of(tmp_path / "out.parquet"), values_here(here))


def test_a_server_elsewhere_needs_a_folder_it_can_reach(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("worker,question,answer\nw,q,a\n")
    flags = ["--method", "majority", "--engine", "spark", "--remote", "sc://cluster.example:15002"]
    done = crowdveil("infer", tmp_path / "answers.csv", "-o", tmp_path / "out.parquet", *flags)
    assert done.returncode == 2
    assert "give --work" in done.stderr
