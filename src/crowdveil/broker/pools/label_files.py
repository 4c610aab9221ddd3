"""Labels as files: CSV, JSON lines and Parquet with one row per task, which datasets libraries load as they are."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.broker.pools.updates import iterate_labels, newest_update
from crowdveil.broker.results.export import FilePieces
from crowdveil.broker.studies.models import Study

COLUMNS = ("task", "label", "probability", "low", "high", "n_reports")
TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}
_SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("label", pa.string()),
        ("probability", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("n_reports", pa.int64()),
    ]
)


def stream_labels(study: Study, kind: str) -> Iterator[bytes]:
    """The file in pieces; refused before the first piece or not at all."""
    newest_update(study)
    return {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}[kind](iterate_labels(study))


def _csv(chunks: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
    for chunk in itertools.chain([[dict(zip(COLUMNS, COLUMNS, strict=True))]], chunks):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([label[name] for name in COLUMNS] for label in chunk)
        yield text.getvalue().encode()


def _jsonl(chunks: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
    for chunk in chunks:
        yield "".join(json.dumps(label, ensure_ascii=False) + "\n" for label in chunk).encode()


def _parquet(chunks: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
    pieces = FilePieces()
    with pq.ParquetWriter(pa.PythonFile(pieces, mode="w"), _SCHEMA) as writer:
        for chunk in chunks:
            writer.write_table(pa.Table.from_pylist(chunk, schema=_SCHEMA))
            yield pieces.taken()
    yield pieces.taken()
