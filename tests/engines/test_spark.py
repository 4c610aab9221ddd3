"""Spark gives what the local engine gives, refuses what it refuses, and leaves nothing on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from crowdveil import Answers, Choices, Reports, Scale, entropy_from
from crowdveil.engines.spark import fit_on_spark, open_spark, read_spark
from crowdveil.estimate import Estimate
from crowdveil.files import read_reports, write_reports
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
