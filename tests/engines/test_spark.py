"""Spark gives what the local engine gives, refuses what it refuses, and leaves nothing on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from cli.run import crowdveil, crowdveil_json
from pyspark.sql import SparkSession

from crowdveil import Answers, Choices, FileError, InputError, Reports, Scale, entropy_from
from crowdveil.engines.spark import SparkReports, fit_on_spark, open_spark, read_spark
from crowdveil.estimate import Estimate
from crowdveil.files import read_reports, write_answers, write_reports
from crowdveil.inference import METHODS, method
from crowdveil.mechanisms import RandomizedResponse


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = open_spark("local[2]", **{"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()


def crowd(domain: Choices | Scale, seed: int) -> Answers:
    """Sixty workers of different skill and two hundred questions."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, domain.size, 200)
    rows = []
    for worker in range(60):
        skill = rng.uniform(0.4, 0.95)
        for question in rng.choice(200, 80, replace=False):
            guess = truth[question] if rng.random() < skill else rng.integers(0, domain.size)
            rows.append((f"w{worker}", f"q{question}", domain.symbols[guess]))
    return Answers.from_rows(rows, domain)


def mixed(domain: Choices | Scale) -> Reports:
    """Half of the workers at ε = 1, half at ε = 3: two channels in one table."""
    answers = crowd(domain, 5)
    low = RandomizedResponse(epsilon=1).randomize(answers, entropy_from(1))
    high = RandomizedResponse(epsilon=3).randomize(answers, entropy_from(2))
    second = low.worker % 2 == 1
    return replace(
        low,
        report=np.where(second, high.report, low.report),
        channel=second.astype(np.int16),
        channels=(low.channels[0], high.channels[0]),
    )


def values_of(folder: Path) -> dict[str, tuple[object, ...]]:
    table = pq.read_table(folder).to_pylist()
    return {row["question"]: tuple(row.values())[1:] for row in table}


def values_here(estimate: Estimate) -> dict[str, tuple[object, ...]]:
    posterior = [] if estimate.posterior is None or not estimate.categorical else list(estimate.posterior.T)
    columns = [estimate.values(), estimate.confidence, estimate.low, estimate.high, *posterior]
    return {str(name): row for name, row in zip(estimate.questions, zip(*columns, strict=True), strict=True)}


def assert_same(there: dict[str, tuple[object, ...]], here: dict[str, tuple[object, ...]]) -> None:
    assert there.keys() == here.keys()
    for question, row in here.items():
        for one, other in zip(there[question], row, strict=True):
            if isinstance(other, str) or other is None:
                assert one == other
            else:
                assert one == pytest.approx(other, abs=1e-9)


ON_SPARK = [
    name
    for name in (
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
    if name in METHODS
]


def configured(name: str) -> dict[str, object]:
    known = METHODS[name].__dataclass_fields__
    wanted: dict[str, object] = {"precision": "float64", "max_iter": 4, "tol": 0.0}
    return {key: value for key, value in wanted.items() if key in known}


@pytest.mark.parametrize("name", ON_SPARK)
def test_spark_equals_the_local_engine(spark: SparkSession, tmp_path: Path, name: str) -> None:
    domain = Scale(1, 5) if METHODS[name].numeric else Choices(("a", "b", "c"))
    path = tmp_path / "reports.parquet"
    write_reports(path, mixed(domain))
    chosen = method(name, **configured(name))
    here = values_here(chosen.fit(read_reports(path)))
    estimate = fit_on_spark(chosen, read_spark(spark, path), tmp_path / "estimates", n_blocks=3)
    assert estimate.provenance["engine"] == "spark"
    assert_same(values_of(tmp_path / "estimates"), here)


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
    old = fit_on_spark(chosen, read_spark(spark, tmp_path / "old.parquet"), tmp_path / "a", work=tmp_path / "w1")
    table = read_spark(spark, tmp_path / "all.parquet")
    cold = fit_on_spark(chosen, table, tmp_path / "b", work=tmp_path / "w2")
    warm = fit_on_spark(chosen, table, tmp_path / "c", start=old)
    assert warm.iterations < cold.iterations
    one, other = values_of(tmp_path / "b"), values_of(tmp_path / "c")
    assert all(one[question][0] == other[question][0] for question in one)


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
