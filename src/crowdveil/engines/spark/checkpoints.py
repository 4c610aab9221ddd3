"""Notes in a job's folder: on a disk of this machine, or where only Spark can write."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from crowdveil.engines.checkpoints import DiskNotes, Notes


def notes_in(folder: str, spark: SparkSession) -> Notes:
    """Notes on a disk of this machine, or at an address such as s3://…, which only Spark can reach."""
    return SparkNotes(folder, spark) if "://" in folder else DiskNotes(Path(folder))


@dataclass(slots=True)
class SparkNotes:
    """Tables of one row, in two places by turns: object stores cannot rename, and one of the two is always whole."""

    folder: str
    spark: SparkSession
    pause: ClassVar[float] = 30.0
    _count: dict[str, int] = field(default_factory=dict, init=False)

    def write(self, name: str, data: bytes) -> None:
        last = self._count.get(name)
        count = 1 + (last if last is not None else max((count for count, _ in self._read_copies(name)), default=0))
        row = self.spark.createDataFrame([(count, bytearray(data))], "count long, data binary")
        row.coalesce(1).write.mode("overwrite").parquet(self._place(name, count))
        self._count[name] = count

    def read(self, name: str) -> bytes | None:
        return max(self._read_copies(name), default=(0, None))[1]

    def _read_copies(self, name: str) -> list[tuple[int, bytes]]:
        copies = []
        for slot in (0, 1):
            try:
                row = self.spark.read.parquet(self._place(name, slot)).first()
            except AnalysisException:
                continue  # nothing was written there, or not all of it
            copies += [] if row is None else [(int(row["count"]), bytes(row["data"]))]
        return copies

    def _place(self, name: str, count: int) -> str:
        return f"{self.folder}/{name}-{count % 2}"
