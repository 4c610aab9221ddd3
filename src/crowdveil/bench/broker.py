"""What a submission costs the broker, what a large study costs, on SQLite and on PostgreSQL; bounded and on loopback.

CPU is the server's own, from the operating system, so a busy machine does not change it much; `peer` is the limit that
we promise. A ratio above 1 means that we are within it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any

from crowdveil.bench._postgres import Postgres, postgres_programs
from crowdveil.bench._serving import ANSWERS, CONNECTIONS, Running, serving

_CPU_LIMIT = {"sqlite": 4.0, "postgresql": 7.0}
_P99_LIMIT, _PAGE_LIMIT, _GROWTH_LIMIT = 500.0, 2.0, 1.2
_MIB = 2**20
Row = dict[str, Any]


def parts(quick: bool) -> dict[str, Callable[[], Iterable[Row]]]:
    """What can be measured by itself; nothing where the broker is not installed."""
    if find_spec("django") is None:
        return {}
    few, many, n_reports = (400, 400, 50_000) if quick else (30_000, 100_000, 1_000_000)
    return {
        "sqlite": lambda: _on("sqlite", few, _speed),
        "postgresql": lambda: _on("postgresql", few, _speed),
        "large": lambda: _large_study(n_reports),
        "memory-sqlite": lambda: _on("sqlite", many, _memory),
        "memory-postgresql": lambda: _on("postgresql", many, _memory),
    }


def cases(quick: bool = False) -> Iterator[Row]:
    """One row per case: `case, n, ours, peer, peer_name, ratio, unit`."""
    for part in parts(quick).values():
        yield from part()


def _on(name: str, n: int, measured: Callable[[str, Running, int], Iterator[Row]]) -> Iterator[Row]:
    """Measure a broker on one database, with `n` workers who have not submitted yet."""
    if name == "sqlite":
        with serving("", n_workers=n) as running:
            yield from measured(name, running, n)
    elif postgres_programs() is not None:
        cluster = Postgres(durable=True)
        try:
            with serving(cluster.new_database(), n_workers=n) as running:
                yield from measured(name, running, n)
        finally:
            cluster.stop()


def _speed(name: str, running: Running, n: int) -> Iterator[Row]:
    """Submissions one after the other on every connection, after a tenth of them to warm up."""
    running.submit(0, n // 10)
    begun = running.cpu_seconds()
    latencies = sorted(running.submit(n // 10, n))
    cpu = 1000 * (running.cpu_seconds() - begun) / len(latencies)
    p99 = 1000 * latencies[int(0.99 * (len(latencies) - 1))]
    yield _row(f"broker on {name}: server CPU of a submission", n, cpu, _CPU_LIMIT[name], "ms")
    yield _row(f"broker on {name}: p99 at {CONNECTIONS} connections", n, p99, _P99_LIMIT, "ms")


def _memory(name: str, running: Running, n: int) -> Iterator[Row]:
    """What the server holds after a tenth, half and all of many submissions."""
    held, done = [], 0
    for upto in (n // 10, n // 2, n):
        running.submit(done, upto)
        held.append(running.memory())
        done = upto
    seen = ", ".join(f"{each / _MIB:.0f}" for each in held)
    yield _row(f"broker on {name}: memory after / before ({seen} MiB)", n, max(held) / held[0], _GROWTH_LIMIT, "times")


def _large_study(n_reports: int) -> Iterator[Row]:
    """The results page of a study with many reports, and exports of all of them."""
    with serving("", n_workers=1, n_submissions=n_reports // ANSWERS) as running:
        path = f"/api/v1/requester/studies/{running.seed['study']}"
        running.wait_for_results(path)
        begun = time.perf_counter()
        running.get(f"{path}/results")
        page = time.perf_counter() - begun
        yield _row("broker: results of a large study", n_reports, page, _PAGE_LIMIT, "s")
        running.post(f"{path}/close")
        for kind in ("csv", "parquet", "json"):
            yield _export(running, f"{path}/exports/0?format={kind}", kind, n_reports)


def _export(running: Running, path: str, kind: str, n_reports: int) -> Row:
    """The most memory that the server ever had while it sent the file, beside what it had before."""
    before = running.memory()
    running.forget_peak()
    size = running.get(path)
    if size < n_reports:
        raise RuntimeError(f"the export of {n_reports} reports had {size} bytes")
    growth = running.peak_memory() / before
    return _row(f"broker: most memory during a {kind} export / before", n_reports, growth, _GROWTH_LIMIT, "times")


def _row(case: str, n: int, ours: float, limit: float, unit: str) -> Row:
    row: Row = {"case": case, "n": n, "ours": ours, "peer": limit, "peer_name": "promised limit"}
    return row | {"ratio": limit / ours, "unit": unit}
