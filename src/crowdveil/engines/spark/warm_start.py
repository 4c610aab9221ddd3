"""Warm starts on Spark: what an earlier fit learned, kept as a folder and matched to a new table by workers' ids."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from crowdveil.engines.spark.checkpoints import notes_in
from crowdveil.engines.spark.job import Job
from crowdveil.errors import FileError, InputError
from crowdveil.files.reports import domain_json
from crowdveil.inference.base import Method
from crowdveil.inference.protocols import Model, Parameters, start_names

_NOTE = "start.npz"


@dataclass(frozen=True, slots=True, eq=False)
class SparkStart:
    """An earlier fit: its parameters, and the ids of the workers they speak of."""

    method: str
    domain: str
    parameters: Parameters
    workers: DataFrame


def keep_start(folder: str | Path, method: Method, job: Job, parameters: Parameters) -> None:
    """Leave in `folder` what a later warm start needs: ids and skills, no answers and no reports."""
    target = str(folder)
    job.workers.write.mode("overwrite").parquet(f"{target}/workers")
    stream = io.BytesIO()
    about = json.dumps({"method": method.name, "domain": domain_json(job.reports.domain)}, sort_keys=True)
    stored: dict[str, Any] = {f"p:{name}": value for name, value in parameters.items()}
    np.savez(stream, about=np.array(about), **stored)
    notes_in(target, job.reports.spark).write(_NOTE, stream.getvalue())


def read_spark_start(spark: SparkSession, folder: str | Path) -> SparkStart:
    """What `keep_start` left."""
    data = notes_in(str(folder), spark).read(_NOTE)
    if data is None:
        raise FileError(f"there is no warm start in {folder}", fix="name the .start folder of an earlier fit on Spark")
    with np.load(io.BytesIO(data)) as stored:
        about = json.loads(str(stored["about"]))
        parameters = {name[2:]: stored[name] for name in stored.files if name.startswith("p:")}
    domain = json.dumps(about["domain"], sort_keys=True)
    return SparkStart(about["method"], domain, parameters, spark.read.parquet(f"{folder}/workers"))


def align_parameters(start: SparkStart, method: Method, model: Model, job: Job) -> Parameters:
    """The parameters for the workers of this table; newcomers begin as the average."""
    domain = json.dumps(domain_json(job.reports.domain), sort_keys=True)
    if (start.method, start.domain) != (method.name, domain):
        raise InputError(f"the start must be of {method.name} on the same answers; got one of {start.method}")
    by_worker, shared = start_names(model, start.parameters)
    if not by_worker and not shared:
        return {}
    was = start.workers.withColumnRenamed("code", "was")
    pairs = job.workers.join(was, "worker").select("code", "was").toPandas().to_numpy(np.int64).reshape(-1, 2)
    matched = {name: _match_workers(start.parameters[name], pairs, job.sizes.n_workers) for name in by_worker}
    return matched | {name: start.parameters[name] for name in shared}


def _match_workers(values: NDArray[np.float64], pairs: NDArray[np.int64], n_workers: int) -> NDArray[np.float64]:
    matched = np.repeat(values.mean(axis=0, keepdims=True).astype(values.dtype), n_workers, axis=0)
    matched[pairs[:, 0]] = values[pairs[:, 1]]
    return matched
