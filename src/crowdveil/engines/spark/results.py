"""Estimates that stay on the cluster: one row per question in Parquet, in the form of every estimates file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from crowdveil.domain import Domain
from crowdveil.estimate import Skills
from crowdveil.inference.protocols import Columns


@dataclass(frozen=True, slots=True)
class EstimateRows:
    """Turns the columns of a block into rows: question, value, confidence, low, high, p:<option>…"""

    domain: Domain
    numeric: bool

    @property
    def schema(self) -> T.StructType:
        """The same columns as in a local estimates file."""
        value = T.DoubleType() if self.numeric else T.StringType()
        fields = [T.StructField("question", T.StringType()), T.StructField("value", value)]
        names = ["confidence", "low", "high", *self._shares()]
        return T.StructType(fields + [T.StructField(name, T.DoubleType()) for name in names])

    def _shares(self) -> list[str]:
        return [] if self.numeric else [f"p:{option}" for option in self.domain.symbols]

    def __call__(self, questions: pa.Array, columns: Columns) -> pa.RecordBatch:
        arrays = [questions, self._values(columns["value"])]
        arrays += [pa.array(np.asarray(columns[name], np.float64)) for name in ("confidence", "low", "high")]
        if not self.numeric:
            posterior = np.asarray(columns["posterior"], dtype=np.float64)
            arrays += [pa.array(np.ascontiguousarray(share)) for share in posterior.T]
        return pa.RecordBatch.from_arrays(
            arrays, names=["question", "value", "confidence", "low", "high", *self._shares()]
        )

    def _values(self, value: NDArray[Any]) -> pa.Array:
        if self.numeric:
            return pa.array(np.asarray(value, np.float64), mask=np.isnan(value))
        return pa.array(self.domain.decode(value.tolist()), pa.string())


def write_workers(workers: DataFrame, skills: Skills, path: str) -> None:
    """What was learnt about each worker, in the form of every workers file; `skills` go by the workers' codes."""
    names = ["skill", "low", "high"]
    columns = [np.asarray(getattr(skills, name), np.float64) for name in names]

    def look_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            code = batch.column(1).to_numpy(zero_copy_only=False)
            arrays = [batch.column(0), *(pa.array(column[code]) for column in columns)]
            yield pa.RecordBatch.from_arrays(arrays, names=["worker", *names])

    schema = "worker string, skill double, low double, high double"
    workers.select("worker", "code").mapInArrow(look_up, schema).write.mode("overwrite").parquet(path)
