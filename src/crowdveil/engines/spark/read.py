"""Reports where they lie on the cluster: read, checked with the same sentences as locally, and given dense codes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from crowdveil.channel import Channel, identity
from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.domain import Choices, Domain
from crowdveil.errors import FileError
from crowdveil.files.answers import choices_of
from crowdveil.files.problems import (
    Problem,
    empty_id,
    no_channel_column,
    no_rows,
    not_a_number,
    unknown_channel,
    unknown_report,
)
from crowdveil.files.reports import METADATA_KEY, channels_beside, spell
from crowdveil.files.table import find_columns
from crowdveil.reports import AnyChannel

_MAX_OPTIONS = 10_000
_COUNTED = "worker string, part int, place long"


@dataclass(frozen=True, slots=True, eq=False)
class SparkReports:
    """A DataFrame with the columns worker, question, report (text, null is ∅) and channel, and what they mean."""

    frame: DataFrame
    channels: tuple[AnyChannel, ...]
    domain: Domain
    source: str = ""
    """Where the rows came from, as far as it is known: a job can only be resumed with the same."""

    @property
    def spark(self) -> SparkSession:
        return self.frame.sparkSession


def read_spark(spark: SparkSession, path: str | Path, domain: Domain | None = None) -> SparkReports:
    """Reports (or unprotected answers) from CSV or Parquet, a file or a folder of them."""
    text = str(path)
    if text.lower().endswith(".csv"):
        frame = spark.read.option("header", True).option("escape", '"').csv(text)
    else:
        frame = spark.read.parquet(text)
    found = find_columns(frame.columns, ["worker", "question", ("report", "answer")], ["channel"], Path(text).name)
    frame = frame.select(*(F.col(f"`{name}`").cast("string").alias(ours) for ours, name in found.items()))
    if "report" not in found:
        return unprotected(frame, domain, source=text)
    channels, own_domain = channels_beside(Path(text), _inside(Path(text)))
    if "channel" not in found and len(channels) != 1:
        raise refused(no_channel_column(), Path(text).name)
    if "channel" not in found:
        frame = frame.withColumn("channel", F.lit("0"))
    return SparkReports(frame, channels, domain or own_domain, text)


def _inside(path: Path) -> bytes | None:
    """The channels in the metadata of a Parquet file, or of the first file of a folder, on a disk we can reach."""
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if path.suffix.lower() == ".csv" or not files or not files[0].is_file():
        return None
    return (pq.read_schema(files[0]).metadata or {}).get(METADATA_KEY)


def unprotected(frame: DataFrame, domain: Domain | None = None, *, source: str = "") -> SparkReports:
    """Answers given without privacy: the identity channel; without a domain, the values seen are the options."""
    given = frame.filter("answer is not null and answer <> ''").withColumnRenamed("answer", "report")
    domain = domain or _choices_seen(given, source)
    return SparkReports(given.withColumn("channel", F.lit("0")), (identity(domain),), domain, source)


def coded(checked: DataFrame, workers: DataFrame, channels: tuple[AnyChannel, ...]) -> DataFrame:
    """Checked rows as question, worker code and report code; channel and number only where they say anything."""
    codes = workers.withColumnRenamed("code", "worker_code")
    columns = [
        F.col("question"),
        F.col("worker_code").cast("int").alias("worker"),
        F.coalesce(F.col("code"), F.lit(-1)).cast("int").alias("report"),
    ]
    if len(channels) > 1:
        columns.append(F.col("channel").cast("short").alias("channel"))
    if any(isinstance(channel, NoiseRecord) for channel in channels):
        columns.append(F.coalesce(F.col("number"), F.lit(0.0)).alias("number"))
    return checked.join(codes, "worker").select(*columns)


def numbered_workers(reports: SparkReports, folder: str) -> tuple[DataFrame, int]:
    """Dense codes for the workers, and how many there are: distinct, sorted, counted within partitions, then offset.

    No dictionary on the driver, no hash that could merge two people, and the same codes for the same workers.
    """
    spark = reports.spark
    ordered = reports.frame.select("worker").filter("worker is not null and worker <> ''").distinct().sort("worker")
    counted = ordered.withColumn("part", F.spark_partition_id()).mapInArrow(_count_on, _COUNTED)
    counted.write.mode("overwrite").parquet(f"{folder}/workers-counted")
    kept = spark.read.schema(_COUNTED).parquet(f"{folder}/workers-counted")
    sizes = sorted((row["part"], row["size"]) for row in kept.groupBy("part").agg(F.count("*").alias("size")).collect())
    offsets = np.cumsum([0, *(size for _, size in sizes)]).tolist()
    starts = spark.createDataFrame(
        [(part, int(offset)) for (part, _), offset in zip(sizes, offsets, strict=False)] or [(0, 0)],
        "part int, start long",
    )
    codes = kept.join(F.broadcast(starts), "part").select("worker", (F.col("start") + F.col("place")).alias("code"))
    codes.write.mode("overwrite").parquet(f"{folder}/workers")
    return workers_in(spark, folder), int(offsets[-1])


def workers_in(spark: SparkSession, folder: str) -> DataFrame:
    """The ids and codes of the workers of a packed table."""
    return spark.read.schema("worker string, code long").parquet(f"{folder}/workers")


def codes_of(workers: DataFrame, wanted: Iterable[Hashable]) -> dict[Hashable, int]:
    """The codes of these workers, as far as they are in the table; nobody else's come to the driver."""
    names = [(str(name),) for name in wanted]
    if not names:
        return {}
    asked = workers.sparkSession.createDataFrame(names, "worker string")
    return {row["worker"]: int(row["code"]) for row in workers.join(F.broadcast(asked), "worker").collect()}


def median_per_worker(reports: SparkReports) -> float:
    """How many reports the worker in the middle gave."""
    each = reports.frame.groupBy("worker").agg(F.count("*").alias("reports"))
    row = each.agg(F.expr("percentile(reports, 0.5)").alias("middle")).first()
    return 0.0 if row is None or row["middle"] is None else float(row["middle"])


def _count_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Number the rows of one partition in the order in which they come."""
    seen = 0
    for batch in batches:
        place = pa.array(np.arange(seen, seen + batch.num_rows, dtype=np.int64))
        seen += batch.num_rows
        yield pa.RecordBatch.from_arrays([batch.column(0), batch.column(1), place], names=["worker", "part", "place"])


def checked(reports: SparkReports) -> tuple[DataFrame, int]:
    """The rows with report codes and how many there are, or the sentence about the first kind of bad row."""
    spark, channels = reports.spark, reports.channels
    outputs = spark.createDataFrame(_outputs(channels), "of int, spelled string, code int")
    noisy = [index for index, channel in enumerate(channels) if isinstance(channel, NoiseRecord)]
    place = F.expr("try_cast(channel as int)")
    rows = reports.frame.withColumn("of_channel", place)
    rows = rows.join(
        F.broadcast(outputs),
        (F.col("of_channel") == F.col("of")) & F.col("report").eqNullSafe(F.col("spelled")),
        "left",
    )
    number = F.when(F.col("of_channel").isin(noisy), F.expr("try_cast(report as double)"))
    rows = rows.withColumn("number", number)
    problems = {
        "worker": "worker is null or worker = ''",
        "question": "question is null or question = ''",
        "channel": f"of_channel is null or of_channel < 0 or of_channel >= {len(channels)}",
        "report": "code is null and (number is null or isnan(number) or abs(number) = double('inf'))",
    }
    counts = rows.agg(
        F.count("*").alias("rows"), *(F.sum(F.expr(f"int({test})")).alias(name) for name, test in problems.items())
    ).first()
    assert counts is not None
    if counts["rows"] == 0:
        raise refused(no_rows(reports.source or "the table"))
    for name, test in problems.items():
        if counts[name]:
            raise _refusal(name, rows.filter(test).first(), channels)
    return rows.drop("channel").withColumnRenamed("of_channel", "channel"), int(counts["rows"])


def _refusal(name: str, row: Any, channels: tuple[AnyChannel, ...]) -> FileError:
    if name in ("worker", "question"):
        return refused(empty_id(name))
    where = f"worker {row['worker']!r}, question {row['question']!r}"
    if name == "channel":
        return refused(unknown_channel(len(channels), row["channel"]), where)
    if isinstance(channels[row["of_channel"]], NoiseRecord):
        return refused(not_a_number(), where)
    return refused(unknown_report(row["of_channel"], row["report"]), where)


def refused(problem: Problem, where: str = "") -> FileError:
    """The words of a local table, with ids instead of a row number: a table on a cluster has none."""
    return FileError(problem.sentence, fix=problem.fix, field=problem.field, source=where)


def _outputs(channels: tuple[AnyChannel, ...]) -> list[tuple[int, str | None, int]]:
    listed = [
        (index, spell(output), code)
        for index, channel in enumerate(channels)
        if isinstance(channel, Channel)
        for code, output in enumerate(channel.outputs)
    ]
    return listed or [(-1, None, -1)]


def _choices_seen(frame: DataFrame, source: str) -> Choices:
    seen = [row["report"] for row in frame.select("report").distinct().limit(_MAX_OPTIONS + 1).collect()]
    if not seen:
        raise refused(no_rows(source or "the table"))
    if len(seen) > _MAX_OPTIONS:
        fix = "name the options, or the scale LOW:HIGH[:STEP]"
        raise FileError(f"more than {_MAX_OPTIONS} different answers were seen", fix=fix)
    return choices_of(seen)
