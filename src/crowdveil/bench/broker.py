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


def parts(quick: bool) -> dict[str, Callable[[], Iterable[dict[str, Any]]]]:
    """What can be measured by itself; nothing where the broker is not installed."""
    if find_spec("django") is None:
        return {}
    n, n_reports = (400, 50_000) if quick else (100_000, 1_000_000)
    return {
        "sqlite": lambda: _intake("sqlite", "", n),
        "postgresql": lambda: _on_postgresql(n),
        "large": lambda: _large_study(n_reports),
    }


def cases(quick: bool = False) -> Iterator[dict[str, Any]]:
    """One row per case: `case, n, ours, peer, peer_name, ratio, unit`."""
    for part in parts(quick).values():
        yield from part()


def _on_postgresql(n: int) -> Iterator[dict[str, Any]]:
    if postgres_programs() is None:
        return
    cluster = Postgres(durable=True)
    try:
        yield from _intake("postgresql", cluster.new_database(), n)
    finally:
        cluster.stop()


def _intake(name: str, database: str, n: int) -> Iterator[dict[str, Any]]:
    """Submissions one after the other on every connection, with a look at the memory after a tenth, half and all."""
    with serving(database, n_workers=n) as running:
        warm = n // 10
        running.submit(0, warm)
        memory, begun = [running.memory()], running.cpu_seconds()
        latencies = running.submit(warm, n // 2)
        memory.append(running.memory())
        latencies = sorted(latencies + running.submit(n // 2, n))
        memory.append(running.memory())
        cpu = 1000 * (running.cpu_seconds() - begun) / (n - warm)
    p99 = 1000 * latencies[int(0.99 * (len(latencies) - 1))]
    yield _row(f"broker on {name}: server CPU of a submission", n, cpu, _CPU_LIMIT[name], "ms")
    yield _row(f"broker on {name}: p99 at {CONNECTIONS} connections", n, p99, _P99_LIMIT, "ms")
    seen = ", ".join(f"{each / _MIB:.0f}" for each in memory)
    case = f"broker on {name}: memory after / before ({seen} MiB)"
    yield _row(case, n, max(memory) / memory[0], _GROWTH_LIMIT, "times")


def _large_study(n_reports: int) -> Iterator[dict[str, Any]]:
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


def _export(running: Running, path: str, kind: str, n_reports: int) -> dict[str, Any]:
    """The most memory that the server ever had while it sent the file, beside what it had before."""
    before = running.memory()
    running.forget_peak()
    size = running.get(path)
    if size < n_reports:
        raise RuntimeError(f"the export of {n_reports} reports had {size} bytes")
    growth = running.peak_memory() / before
    return _row(f"broker: most memory during a {kind} export / before", n_reports, growth, _GROWTH_LIMIT, "times")


def _row(case: str, n: int, ours: float, limit: float, unit: str) -> dict[str, Any]:
    row: dict[str, Any] = {"case": case, "n": n, "ours": ours, "peer": limit, "peer_name": "promised limit"}
    return row | {"ratio": limit / ours, "unit": unit}
