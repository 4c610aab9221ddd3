"""Inference on Spark beside the local kernel on one thread: iterations, packing, start-up, the driver's memory.

Everything runs on this one machine, so no row says anything about many machines. Each size has a process of its own.
Iterations are timed on the clock, because Spark works in other processes; the fastest counts, the first two do not.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.bench._measure import crowd, in_process, row
from crowdveil.bench._whole_job import write_answers
from crowdveil.inference import method
from crowdveil.inference.threads import LocalEngine, LocalSession

_METHODS = ("one-coin", "dawid-skene")
_ITERATIONS = 7
_PARTITIONS = 4
_MIB = 1 << 20


def cases(quick: bool) -> Iterator[dict[str, Any]]:
    """One row after the other; `quick` shows that it runs, at sizes where Spark can only lose."""
    if find_spec("pyspark") is None or find_spec("psutil") is None or shutil.which("java") is None:
        return
    sizes = (20_000, 40_000) if quick else (10_000_000, 50_000_000)
    grown = []
    for n, limit in zip(sizes, (4.0, 2.0), strict=True):
        start_up, memory, *figures = in_process(
            "import sys\nfrom crowdveil.bench.spark import job\njob(*sys.argv[1:])", n
        )
        grown.append(memory)
        yield row("spark, session and first job", n, start_up, None, "", unit="s on the clock")
        for index, name in enumerate(_METHODS):
            packing, packed, states, ours, local = figures[5 * index : 5 * index + 5]
            yield row(f"spark, packing for {name}", n, packing * 1e9 / n, None, "", unit="ns per answer on the clock")
            yield row(f"spark, packed blocks for {name}", n, packed / n, None, "", unit="bytes per answer on disk")
            yield row(f"spark, states of {name}", n, states / n, None, "", unit="bytes per answer on disk")
            yield _beside(name, n, ours, local, limit)
    yield _memory(sizes, grown)


def _beside(name: str, n: int, ours: float, local: float, limit: float) -> dict[str, Any]:
    """The ratio is how many times longer Spark takes on all processors than the local kernel on one thread."""
    case = f"spark, {name}, one iteration (ratio: spark/local, limit {limit:g})"
    return row(case, n, ours, local, "local kernel, one thread", unit="s on the clock") | {"ratio": ours / local}


def _memory(sizes: tuple[int, ...], grown: list[float]) -> dict[str, Any]:
    """The driver holds parameters: per worker, never per answer or question (workers grow with answers here)."""
    case = f"spark, the driver's growth (peer: {sizes[0]:,} answers)"
    return row(case, sizes[1], max(grown[1] / _MIB, 0.1), grown[0] / _MIB, "ours", unit="MiB")


def job(n_answers: str) -> None:
    """Measure one size in this process and print: start-up, memory, then packing, Spark and local by method."""
    engine = import_module("crowdveil.engines.spark")
    n, figures = int(n_answers), []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "answers.parquet"
        write_answers(source, crowd(n, text_ids=True))
        started = time.perf_counter()
        spark = engine.open_spark("local[2]", **{"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "4"})
        spark.range(10).count()
        start_up = time.perf_counter() - started
        table = engine.read_spark(spark, source)
        before = _resident()
        for name in _METHODS:
            figures.append(_measured(engine, table, name, Path(folder) / name))
        memory = _resident() - before
        spark.stop()
    reports = crowd(n)
    for name, so_far in zip(_METHODS, figures, strict=True):
        here = LocalEngine(threads=1)
        local = method(name, max_iter=_ITERATIONS, tol=-1.0, precision="float32", engine=here)
        so_far.append(_fastest(_passes(LocalSession, partial(local.fit, reports))))
    print(start_up, memory, *(figure for each in figures for figure in each))  # noqa: T201


def _measured(engine: Any, table: Any, name: str, folder: Path) -> list[float]:
    """Seconds of packing, bytes of packed blocks and of states, and seconds of one iteration."""
    chosen = method(name, max_iter=_ITERATIONS, tol=-1.0, precision="float32")
    session = import_module("crowdveil.engines.spark.session").SparkBlocks
    begun = time.perf_counter()
    fit = partial(engine.fit_on_spark, chosen, table, folder / "estimates", work=folder, n_blocks=_PARTITIONS)
    passes = _passes(session, fit)
    sizes = [sum(file.stat().st_size for file in (folder / part).glob("*.parquet")) for part in ("packed", "state-0")]
    shutil.rmtree(folder)
    return [passes[0] - begun, *sizes, _fastest(passes)]


def _passes(session: Any, fit: Callable[[], object]) -> list[float]:
    """When each pass of a fit began."""
    begun: list[float] = []
    plain = session.e_pass

    def e_pass(self: Any, parameters: Any) -> Any:
        begun.append(time.perf_counter())
        return plain(self, parameters)

    session.e_pass = e_pass
    try:
        fit()
    finally:
        session.e_pass = plain
    return begun


def _fastest(begun: list[float]) -> float:
    return float(np.diff(begun[2:]).min())


def _resident() -> int:
    """Bytes that this process, the driver's Python, holds."""
    return int(import_module("psutil").Process().memory_info().rss)
