"""Inference on Spark beside the local kernel on one thread: iterations, packing, start-up, the driver's memory.

Everything runs on this one machine, so no row says anything about many machines. Each size has a process of its own.
Iterations are timed on the clock, because Spark works in other processes; the fastest counts, the first two do not.
The driver's memory is measured with always the same workers, because it holds parameters, which are per worker. Its
Java heap is what is left after a collection; on one machine executors share it, so it can only be too large.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from crowdveil.bench._measure import crowd, in_process, row
from crowdveil.bench._whole_job import write_answers
from crowdveil.inference import method
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.engine.em import run
from crowdveil.inference.engine.local import LocalEngine, Passes
from crowdveil.inference.protocols import Parameters, Statistics

SIZES = {"1m": 1_000_000, "10m": 10_000_000, "50m": 50_000_000}
LIMITS = {"10m": 4.0, "50m": 2.0}
_METHODS = ("one-coin", "dawid-skene")
_ITERATIONS = 30
"""As many as a fit takes: Java compiles what it runs for the first dozen of them, and the fastest one counts."""
_WORKERS = 5_000
_MIB = 1 << 20


def parts(quick: bool) -> dict[str, Callable[[], Iterator[dict[str, Any]]]]:
    """What can be measured by itself, each within minutes; a part makes what an earlier one has not left for it."""
    if find_spec("pyspark") is None or find_spec("psutil") is None or shutil.which("java") is None:
        return {}
    parts_by_name: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {}
    for name, size in SIZES.items():
        n = size // 500 if quick else size
        parts_by_name[f"answers-{name}"] = partial(_answers, n)
        parts_by_name[f"packing-{name}"] = partial(_packing, n)
        parts_by_name[name] = partial(_times, n, LIMITS.get(name))
        parts_by_name[f"memory-{name}"] = partial(_memory, n)
    return parts_by_name


def cases(quick: bool) -> Iterator[dict[str, Any]]:
    """One row after the other; `quick` shows that it runs, at sizes where Spark can only lose."""
    left_out = ("1m", "packing-1m", *(f"answers-{name}" for name in SIZES))
    for name, part in parts(quick).items():
        if name in ("packing-10m", "10m", "memory-1m") if quick else name not in left_out:
            yield from part()


def _answers(n: int) -> Iterator[dict[str, Any]]:
    """The tables that the other parts read, which they would otherwise make themselves."""
    for kind in ("times", "memory"):
        size = (_table(kind, n) / "answers.parquet").stat().st_size
        yield row(f"spark, the table for {kind}", n, size / n, None, "", unit="bytes per answer on disk")


def _packing(n: int) -> Iterator[dict[str, Any]]:
    result = _job("packing", n, _table("times", n))
    yield row("spark, session and first job", n, result["start"], None, "", unit="s on the clock")
    yield row("spark, packing", n, result["packing"] * 1e9 / n, None, "", unit="ns per answer on the clock")
    yield row("spark, packed blocks", n, result["packed"] / n, None, "", unit="bytes per answer on disk")


def _times(n: int, limit: float | None) -> Iterator[dict[str, Any]]:
    result = _job("times", n, _table("times", n))
    shutil.rmtree(_folder("times", n))
    for name in _METHODS:
        ours = result[name]
        yield row(f"spark, layout for {name}", n, ours["layout"] * 1e9 / n, None, "", unit="ns per answer on the clock")
        yield row(f"spark, states of {name}", n, ours["states"] / n, None, "", unit="bytes per answer on disk")
        yield row(f"spark, read by a pass of {name}", n, ours["read"] / n, None, "", unit="bytes per answer")
        case = f"spark, {name}, one iteration (ratio: spark/local{f', limit {limit:g}' if limit else ''})"
        beside = row(case, n, ours["spark"], ours["local"], "local, one thread", unit="s on the clock")
        yield beside | {"ratio": ours["spark"] / ours["local"]}


def _memory(n: int) -> Iterator[dict[str, Any]]:
    result = _job("memory", n, _table("memory", n))
    shutil.rmtree(_folder("memory", n))
    yield row("spark, the driver's Python after a fit", n, result["python"] / _MIB, None, "", unit="MiB")
    yield row("spark, the driver's Java heap after a fit", n, result["heap"] / _MIB, None, "", unit="MiB")
    yield row("spark, results that never came to the driver", n, result["results"] / _MIB, None, "", unit="MiB")


def _folder(kind: str, n: int) -> Path:
    """Kept among the temporary files until the last part that needs it has run."""
    return Path(tempfile.gettempdir()) / "crowdveil-bench-spark" / f"{kind}-{n}"


def _table(kind: str, n: int) -> Path:
    """The folder with the answers, made in a process of their own: what measures must not have seen them."""
    folder = _folder(kind, n)
    if not (folder / "answers.parquet").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        in_process(_SCRIPT.format("make"), kind, n, folder)
    return folder


_SCRIPT = "import sys\nfrom crowdveil.bench import spark\nspark.{}(*sys.argv[1:])"


def _job(kind: str, n: int, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", _SCRIPT.format(kind), str(n), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def make(kind: str, n_answers: str, folder: str) -> None:
    """Write the answers with ids that are text."""
    answers = crowd(int(n_answers), text_ids=True, n_workers=_WORKERS if kind == "memory" else None)
    unfinished = Path(folder) / "unfinished.parquet"
    try:
        write_answers(unfinished, answers)
        unfinished.rename(Path(folder) / "answers.parquet")
    finally:
        unfinished.unlink(missing_ok=True)
    print(len(answers))  # noqa: T201


def packing(n_answers: str, folder: str) -> None:
    """Measure the start and the packing in this process and print what was found."""
    begun = time.perf_counter()
    spark = _session()
    spark.range(10).count()
    started = time.perf_counter()
    _pack_job(spark, folder, resume=False)
    seconds = time.perf_counter() - started
    spark.stop()
    result = {"start": started - begun, "packing": seconds, "packed": _bytes(Path(folder) / "work" / "packed")}
    print(json.dumps(result))  # noqa: T201


def times(n_answers: str, folder: str) -> None:
    """Measure layouts and iterations in this process, on Spark and then beside it, and print what was found."""
    engine, result = import_module("crowdveil.engines.spark"), {}
    spark = _session()
    job = _pack_job(spark, folder, resume=True)
    with engine.one_task_per_file(spark):
        for name in _METHODS:
            result[name] = _on_spark(job, name)
    spark.stop()
    reports = crowd(int(n_answers))
    for name in _METHODS:
        model = _method(name).model(table_context(reports))
        result[name]["local"] = _iteration(model, LocalEngine(threads=1).open(model, reports))
    print(json.dumps(result))  # noqa: T201


def _session() -> Any:
    engine = import_module("crowdveil.engines.spark")
    return engine.open_spark("local[2]", **{"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "4"})


def _pack_job(spark: Any, folder: str, *, resume: bool) -> Any:
    engine = import_module("crowdveil.engines.spark")
    table = engine.read_spark(spark, Path(folder) / "answers.parquet")
    return engine.pack_on_spark(table, Path(folder) / "work", resume=resume)


def _on_spark(job: Any, name: str) -> dict[str, float]:
    model = _method(name).model(job.context)
    blocks = import_module("crowdveil.engines.spark.passes").SparkBlocks(model, job, keeps=True)
    begun = time.perf_counter()
    blocks.begin({})
    layout = time.perf_counter() - begun
    return {
        "layout": layout,
        "states": _bytes(Path(job.folder) / "state-0"),
        "read": _bytes(Path(job.folder) / "state-0", column="payload"),
        "spark": _iteration(model, blocks),
    }


def memory(n_answers: str, folder: str) -> None:
    """Fit, and print what the driver holds afterwards."""
    engine, spark = import_module("crowdveil.engines.spark"), _session()
    table = engine.read_spark(spark, Path(folder) / "answers.parquet")
    chosen = method("dawid-skene", max_iter=3, tol=-1.0, precision="float32")
    engine.fit_on_spark(chosen, table, f"{folder}/estimates", work=f"{folder}/work", workers_out=f"{folder}/workers")
    python = import_module("psutil").Process().memory_info().rss
    java = spark.sparkContext._jvm.java.lang
    java.System.gc()
    heap = java.Runtime.getRuntime().totalMemory() - java.Runtime.getRuntime().freeMemory()
    spark.stop()
    result = {"python": python, "heap": heap, "results": _bytes(Path(folder) / "estimates")}
    print(json.dumps(result))  # noqa: T201


def _method(name: str) -> Any:
    return method(name, max_iter=_ITERATIONS, tol=-1.0, precision="float32")


def _bytes(folder: Path, *, column: str | None = None) -> int:
    """What the Parquet files in a folder take, or one column of them."""
    if column is None:
        return sum(file.stat().st_size for file in folder.glob("*.parquet"))
    metadata = (pq.read_metadata(file).to_dict() for file in folder.glob("*.parquet"))
    columns = (part for each in metadata for group in each["row_groups"] for part in group["columns"])
    return sum(part["total_compressed_size"] for part in columns if part["path_in_schema"] == column)


@dataclass(slots=True)
class _Clocked:
    """Passes, and when each of them began."""

    session: Passes
    begun: list[float] = field(default_factory=list)

    @property
    def threads(self) -> int:
        return self.session.threads

    def e_pass(self, parameters: Parameters) -> Statistics:
        self.begun.append(time.perf_counter())
        return self.session.e_pass(parameters)

    def score_pass(self, parameters: Parameters) -> Statistics:
        return self.session.score_pass(parameters)


def _iteration(model: Any, session: Passes) -> float:
    """Seconds of the fastest iteration, from one pass to the next; the first two warm up."""
    clocked = _Clocked(session)
    run(model, clocked, max_iter=_ITERATIONS, tol=-1.0)
    return float(np.diff(clocked.begun[2:]).min())
