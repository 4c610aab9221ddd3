"""Crowds for the engines' tests, and how results on Spark are compared with those of the local engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pyspark
import pytest

from crowdveil import Answers, Choices, Reports, Scale, entropy_from
from crowdveil.estimate import Estimate
from crowdveil.mechanisms import RandomizedResponse

OLD_SPARK = [
    pytest.mark.filterwarnings(f"ignore:{message}")
    for message in ("distutils Version classes", "unclosed", "Exception ignored in. <socket")
    if pyspark.__version__ < "4"
]
"""Spark 3.5 warns about itself: about its use of distutils and the sockets it leaves open."""


QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
}
"""Small jobs on short-lived machines: compiling them thoroughly would take longer than running them."""


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


def mixed(domain: Choices | Scale, *, hidden: bool = False) -> Reports:
    """Half of the workers at ε = 1, half at ε = 3, whose channel may hide participation: two channels in one table."""
    answers = crowd(domain, 5)
    low = RandomizedResponse(epsilon=1).randomize(answers, entropy_from(1))
    high = RandomizedResponse(epsilon=3, protect_participation=hidden).randomize(answers, entropy_from(2))
    parts = [low.rows(np.flatnonzero(low.worker % 2 == 0)), high.rows(np.flatnonzero(high.worker % 2 == 1))]
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in ("worker", "question", "report")]
    channel = np.repeat(np.arange(2, dtype=np.int16), [len(part) for part in parts])
    return Reports(*columns, channel, low.workers, low.questions, (low.channels[0], high.channels[0]), domain)


def values_of(folder: Path) -> dict[str, tuple[object, ...]]:
    """The rows of a Parquet folder by their first column, the question or the worker."""
    return {row[0]: row[1:] for row in (tuple(row.values()) for row in pq.read_table(folder).to_pylist())}


def values_here(estimate: Estimate) -> dict[str, tuple[object, ...]]:
    posterior = [] if estimate.posterior is None or not estimate.categorical else list(estimate.posterior.T)
    columns = [estimate.values(), estimate.confidence, estimate.low, estimate.high, *posterior]
    return {str(name): row for name, row in zip(estimate.questions, zip(*columns, strict=True), strict=True)}


def skills_here(estimate: Estimate) -> dict[str, tuple[object, ...]]:
    skills = estimate.skills
    assert skills is not None
    columns = (skills.skill, skills.low, skills.high)
    return {str(name): row for name, row in zip(skills.workers, zip(*columns, strict=True), strict=True)}


def assert_same(there: dict[str, tuple[object, ...]], here: dict[str, tuple[object, ...]]) -> None:
    assert there.keys() == here.keys()
    for question, row in here.items():
        for one, other in zip(there[question], row, strict=True):
            if isinstance(other, str) or other is None:
                assert one == other
            else:
                assert one == pytest.approx(other, abs=1e-9)
