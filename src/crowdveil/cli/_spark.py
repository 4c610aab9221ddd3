"""`crowdveil infer --engine spark`: the same command where the reports do not fit on one machine."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.cli._common import estimate_json, refuse_existing
from crowdveil.domain import Domain
from crowdveil.errors import InputError
from crowdveil.estimate import Estimate
from crowdveil.files.write import is_parquet
from crowdveil.inference import Method
from crowdveil.inference.metrics import constants, n_scored, score


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where Spark is, and the folder that driver and executors share."""

    master: str | None = None
    remote: str | None = None
    work: Path | None = None
    resume: bool = False

    def check(self) -> None:
        """A server elsewhere cannot see this machine's folders."""
        host = (self.remote or "").removeprefix("sc://").partition("/")[0].partition(":")[0]
        here = host.startswith("local") or host == "127.0.0.1"
        if self.remote and not here and self.work is None:
            raise InputError("a Spark Connect server elsewhere needs a folder it can write to", fix="give --work")


def infer_on_spark(
    chosen: Method,
    reports: Path,
    domain: Domain | None,
    output: Path,
    cluster: Cluster,
    *,
    workers_out: Path | None,
    start: Path | None,
    truth: Mapping[Any, object] | None,
    force: bool,
) -> dict[str, Any]:
    """Fit on Spark and return the command's JSON; estimates become a Parquet folder."""
    from crowdveil.engines.spark import fit_on_spark, open_spark, read_spark, read_spark_start

    cluster.check()
    for path in (output, workers_out):
        if path is not None:
            _check_folder(path, force)
    spark = open_spark(cluster.master, remote=cluster.remote)
    table = read_spark(spark, address(reports), domain)
    with _whole_folders(output, start_folder(output), workers_out):
        estimate = fit_on_spark(
            chosen,
            table,
            address(_temporary_output(output)),
            start=read_spark_start(spark, address(start_folder(start))) if start else None,
            start_out=address(_temporary_output(start_folder(output))),
            workers_out=address(_temporary_output(workers_out)) if workers_out else None,
            work=address(cluster.work) if cluster.work else None,
            resume=cluster.resume,
        )
        result = estimate_json(estimate, estimate.provenance, table.channels, "spark")
        if truth is not None:
            result |= _score(estimate, address(_temporary_output(output)), truth, spark)
    return result


@contextmanager
def _whole_folders(*wanted: Path | None) -> Iterator[None]:
    """Folders that take their places when all is done; of a job that fails none is left. Stores cannot rename."""
    folders = [path for path in wanted if path is not None and _temporary_output(path) != path]
    try:
        yield
        for path in folders:
            if _temporary_output(path).exists():
                shutil.rmtree(path, ignore_errors=True)
                _temporary_output(path).replace(path)
    finally:
        for path in folders:
            shutil.rmtree(_temporary_output(path), ignore_errors=True)


def address(path: Path) -> str:
    """A path as Spark takes it; s3://… has lost a slash on its way through Path."""
    return re.sub(r"^([a-z][a-z0-9+.-]+):/+", r"\1://", str(path))


def start_folder(estimates: Path) -> Path:
    """Where the warm start of an estimates folder stands: estimates.parquet has estimates.parquet.start."""
    return estimates.with_name(estimates.name + ".start")


def _temporary_output(output: Path) -> Path:
    """Written beside and renamed, so that a job that dies leaves no half of a result; stores cannot rename."""
    return output if "://" in address(output) else output.with_name(f".{output.name}-unfinished")


def _check_folder(path: Path, force: bool) -> None:
    if not is_parquet(path):
        raise InputError(f"Spark writes Parquet; got {str(path)!r}", fix="give the output the extension .parquet")
    refuse_existing(path, force=force)
    if path.is_file():
        path.unlink()


def _score(estimate: Estimate, folder: str, truth: Mapping[Any, object], spark: Any) -> dict[str, Any]:
    """Only the questions whose truth is known come to this machine."""
    truth_frame = spark.createDataFrame([(str(name),) for name in truth], "question string")
    rows = spark.read.parquet(folder).join(truth_frame, "question").select("question", "value").collect()
    values = [row["value"] for row in rows]
    value = (
        np.array([np.nan if each is None else each for each in values], dtype=np.float64)
        if estimate.value.dtype == np.float64
        else estimate.domain.encode(values)
    )
    unknown = np.zeros(len(values))
    few = Estimate(
        estimate.method,
        estimate.domain,
        np.array([row["question"] for row in rows], dtype=object),
        value,
        unknown,
        unknown,
        unknown,
    )
    return {"metrics": score(few, truth), "baselines": constants(few, truth), "n_scored": n_scored(few, truth)}
