"""Estimates that stay on the cluster: one row per question in Parquet, in the form of every estimates file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from crowdveil.domain import Domain
from crowdveil.inference.model import Columns, Parameters


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

    def __call__(self, questions: list[str], columns: Columns) -> pa.RecordBatch:
        arrays = [pa.array(questions, pa.string()), self._values(columns["value"])]
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


def write_workers(workers: DataFrame, parameters: Parameters, n_workers: int, path: str) -> None:
    """What was learnt about each worker: every parameter that is one number per worker."""
    columns = {name: np.asarray(value, np.float64) for name, value in parameters.items() if value.shape == (n_workers,)}
    if "log_confusion" in parameters:
        columns["skill"] = _right(parameters)
    names = ["worker", *columns]

    def look_up(batches: Any) -> Any:
        for batch in batches:
            code = batch.column(1).to_numpy(zero_copy_only=False)
            arrays = [batch.column(0), *(pa.array(np.ascontiguousarray(value[code])) for value in columns.values())]
            yield pa.RecordBatch.from_arrays(arrays, names=names)

    fields = [T.StructField("worker", T.StringType()), *(T.StructField(name, T.DoubleType()) for name in columns)]
    workers.select("worker", "code").mapInArrow(look_up, T.StructType(fields)).write.mode("overwrite").parquet(path)


def _right(parameters: Parameters) -> NDArray[np.float64]:
    """The probability of a right answer under a full confusion: worker × answer × truth."""
    classes = np.exp(parameters["log_classes"])
    given = np.exp(parameters["log_confusion"][:, : len(classes)].astype(np.float64))
    return np.asarray(np.einsum("wtt,t->w", given / given.sum(axis=1, keepdims=True), classes))
