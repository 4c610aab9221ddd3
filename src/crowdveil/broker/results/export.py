"""Streaming exports: rows in the order of random ids, a few thousand at a time, whatever the size of the study."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.broker.pools import tables as pools
from crowdveil.broker.pools.task_list import is_pool
from crowdveil.broker.problems import Refusal
from crowdveil.broker.results.tables import Part, Stored, chunks, split_by_domain
from crowdveil.broker.studies.definition import Definition, read_definition
from crowdveil.broker.studies.models import Study
from crowdveil.broker.submissions.models import Submission
from crowdveil.broker.submissions.validation import NO_REPORT
from crowdveil.files.reports import METADATA_KEY, channels_json, domain_json, spell

TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json", "parquet": "application/vnd.apache.parquet"}
"""The kinds of files, and what a browser is told that each is."""
# So many at a time: enough for a good Parquet row group, and little beside what the broker holds anyway.
_ROWS = 20_000
_COLUMNS = ("worker", "question", "report", "channel")
_SCHEMA = [("worker", pa.string()), ("question", pa.string()), ("report", pa.string()), ("channel", pa.int16())]


def list_exports(study: Study) -> list[dict[str, Any]]:
    return [
        {"part": part.number, "questions": list(part.questions), "domain": domain_json(part.domain)}
        for part in split_by_domain(_exportable(study))
    ]


def channels(study: Study, number: int) -> dict[str, Any]:
    part = _part(_exportable(study), number)
    return channels_json(part.channels, part.domain)


def stream(study: Study, number: int, kind: str) -> Iterator[bytes]:
    """The file in pieces; refused before the first piece or not at all."""
    opened = _exportable(study)
    part = _part(opened, number)
    columns = (pools.column_chunks if is_pool(study.id) else _column_chunks)(study.id, opened, part)
    return {"csv": _csv, "json": _json, "parquet": _parquet}[kind](columns, part)


def _exportable(study: Study) -> Definition:
    """Closed studies only: two exports of a running one would differ by whoever answered in between."""
    if study.state not in ("closed", "published"):
        raise Refusal("wrong-state", f"reports are exported once the study is closed; it is {study.state}")
    opened = read_definition(study.definition, study.sha256)
    minimum = int(opened.document["minimum_n"])
    if is_pool(study.id):
        pools.check_enough_workers(study.id, minimum)
    elif Submission.objects.filter(study=study.id).count() < minimum:
        raise Refusal("below-minimum", f"reports are exported from {minimum} submissions on", minimum_n=minimum)
    return opened


def _part(opened: Definition, number: int) -> Part:
    parts = split_by_domain(opened)
    if number >= len(parts):
        raise Refusal("not-found", f"this study has the parts 0 to {len(parts) - 1}")
    return parts[number]


def _column_chunks(study: str, opened: Definition, part: Part) -> Iterator[dict[str, list[Any]]]:
    """Columns of texts, chunk by chunk. Workers get new names in every export, unless the study is linkable."""
    spelled = [[spell(output) for output in channel.outputs] for channel in part.channels]
    seen = 0
    for stored in chunks(study, opened, size=max(1, _ROWS // len(opened.questions))):
        linkable = opened.document["linkable"]
        names = stored.pseudonyms if linkable else [f"w{seen + offset}" for offset in range(len(stored))]
        seen += len(stored)
        yield _columns(part, stored, names, spelled)


def _columns(part: Part, stored: Stored, names: list[str], spelled: list[list[str | None]]) -> dict[str, list[Any]]:
    codes = stored.codes[:, part.places]
    worker, question = np.nonzero(codes != NO_REPORT)
    channel = np.array(part.channel_of_level)[stored.levels[worker]]
    return {
        "worker": [names[each] for each in worker],
        "question": [part.questions[each] for each in question],
        "report": [spelled[through][code] for through, code in zip(channel, codes[worker, question], strict=True)],
        "channel": channel.tolist(),
    }


def _csv(columns: Iterator[dict[str, list[Any]]], part: Part) -> Iterator[bytes]:
    yield (",".join(_COLUMNS) + "\n").encode()
    for chunk in columns:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(zip(*(chunk[name] for name in _COLUMNS), strict=True))
        yield text.getvalue().encode()


def _json(columns: Iterator[dict[str, list[Any]]], part: Part) -> Iterator[bytes]:
    """An array of rows, each an object."""
    yield b"["
    separator = ""
    for chunk in columns:
        rows = [dict(zip(_COLUMNS, row, strict=True)) for row in zip(*(chunk[name] for name in _COLUMNS), strict=True)]
        yield (separator + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)).encode()
        separator = ",\n" if rows else separator
    yield b"]\n"


class FilePieces(io.RawIOBase):
    """A file that hands on what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        self._pieces.append(bytes(piece))
        return len(self._pieces[-1])

    def taken(self) -> bytes:
        taken, self._pieces = b"".join(self._pieces), []
        return taken


def _parquet(columns: Iterator[dict[str, list[Any]]], part: Part) -> Iterator[bytes]:
    metadata = {METADATA_KEY: json.dumps(channels_json(part.channels, part.domain), ensure_ascii=False).encode()}
    schema = pa.schema(_SCHEMA, metadata=metadata)
    pieces = FilePieces()
    with pq.ParquetWriter(pa.PythonFile(pieces, mode="w"), schema) as writer:
        for chunk in columns:
            writer.write_table(pa.table(chunk, schema=schema))
            yield pieces.taken()
    yield pieces.taken()
