"""A large reports file is read once: its codes stay beside it as Arrow IPC and serve while the file is unchanged."""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.domain import Domain
from crowdveil.files.reports import channels_from_json, channels_json, domain_json, read_reports, sidecar
from crowdveil.reports import Reports

FORMAT = "crowdveil-codes/1"
WORTHWHILE = 100_000
"""A file with fewer rows is read faster than anybody notices; nothing is left beside it."""
_SAMPLE = 1 << 16
_ABANDONED = 3600.0
"""Seconds after which a file that nobody has written to belongs to a process that was killed."""


def cache_of(path: str | Path) -> Path:
    """Where the codes of a file stand: reports.csv has .reports.csv.codes.arrow."""
    path = Path(path)
    return path.with_name(f".{path.name}.codes.arrow")


def read_reports_cached(
    path: str | Path, domain: Domain | None = None, *, cache: bool = True, normalize: bool = False
) -> Reports:
    """Like `read_reports`; the second reading of a large file is instant."""
    if not cache or not Path(path).is_file():
        return read_reports(path, domain, normalize=normalize)
    seal = _seal(Path(path), domain, normalize)
    kept = _kept(cache_of(path), seal)
    if kept is not None:
        return kept
    reports = read_reports(path, domain, normalize=normalize)
    if len(reports) >= WORTHWHILE:
        # A folder that cannot be written to only means reading the file again next time.
        with contextlib.suppress(OSError):
            _keep(cache_of(path), seal, reports)
    return reports


def _seal(path: Path, domain: Domain | None, normalize: bool) -> str:
    """Changes whenever the file, its channels or the wanted domain do: size, time and samples of the content."""
    known = path.stat()
    digest = hashlib.sha256(f"{FORMAT} {known.st_size} {known.st_mtime_ns} {normalize}".encode())
    with path.open("rb") as stream:
        for place in (0, known.st_size // 2, max(known.st_size - _SAMPLE, 0)):
            stream.seek(place)
            digest.update(stream.read(_SAMPLE))
    for beside in (sidecar(path), path.with_suffix(".channels.json")):
        digest.update(beside.read_bytes() if beside.is_file() else b"")
    digest.update(json.dumps(domain_json(domain) if domain else None).encode())
    return digest.hexdigest()


def _keep(place: Path, seal: str, reports: Reports) -> None:
    names = ["worker", "question", "report"]
    if len(reports.channels) > 1:
        names.append("channel")
    if reports.number is not None:
        names.append("number")
    channels = json.dumps(channels_json(reports.channels, reports.domain))
    metadata = {
        b"seal": seal.encode(),
        b"channels": channels.encode(),
        b"workers": _packed(reports.workers),
        b"questions": _packed(reports.questions),
    }
    table = pa.table({name: getattr(reports, name) for name in names}).replace_schema_metadata(metadata)
    with (
        _becoming(place) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)


@contextlib.contextmanager
def _becoming(place: Path) -> Iterator[Path]:
    """A file of our own that takes that place when it is complete, and is gone when it is not."""
    _tidy(place)
    temporary = place.with_suffix(f".{secrets.token_hex(6)}.tmp")
    try:
        yield temporary
        temporary.replace(place)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _tidy(place: Path) -> None:
    """Remove what killed processes left. Were one of them alive after all, it would only fail to keep its codes."""
    for left in place.parent.iterdir():
        if left.name.startswith(f"{place.stem}.") and left.suffix == ".tmp":
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > _ABANDONED:
                    left.unlink()


def _kept(place: Path, seal: str) -> Reports | None:
    """The cached table, memory-mapped; None when there is none or the source changed."""
    if not place.is_file():
        return None
    try:
        table = pa.ipc.open_file(pa.memory_map(str(place))).read_all()
    except (pa.ArrowInvalid, OSError):
        return None
    metadata = table.schema.metadata or {}
    if metadata.get(b"seal") != seal.encode():
        return None
    channels, domain = channels_from_json(json.loads(metadata[b"channels"]))
    found = {name: _column(table[name]) for name in table.column_names}
    return Reports(
        found["worker"],
        found["question"],
        found["report"],
        found.get("channel", np.zeros(len(table), dtype=np.int16)),
        _unpacked(metadata[b"workers"]),
        _unpacked(metadata[b"questions"]),
        channels,
        domain,
        found.get("number"),
    )


def _column(column: Any) -> NDArray[Any]:
    whole = column.combine_chunks()
    values: NDArray[Any] = whole.to_numpy(zero_copy_only=False)
    return values


def _packed(ids: NDArray[Any]) -> bytes:
    batch = pa.record_batch({"id": pa.array([str(name) for name in ids], pa.string())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _unpacked(packed: bytes) -> NDArray[Any]:
    values: NDArray[Any] = pa.ipc.open_stream(packed).read_all()["id"].to_numpy()
    return values
