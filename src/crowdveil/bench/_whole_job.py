"""From a CSV file with text ids to a file of posteriors: our command and the same job in crowd-kit, time and memory."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.bench._measure import crowd, in_process, row
from crowdveil.files.write import coded_column, write_table
from crowdveil.reports import Reports

ITERATIONS = 5
# Not what getrusage says: that counts what the process had been before it was this one.
_CLOSING = """
seconds = time.perf_counter() - started
with open("/proc/self/status") as stream:
    print(seconds, next(int(line.split()[1]) * 1024 for line in stream if line.startswith("VmHWM")))
"""
_THEIRS = f"""
import sys, time
started = time.perf_counter()
import pandas
from crowdkit.aggregation import DawidSkene
frame = pandas.read_csv(sys.argv[1])
fitted = DawidSkene(n_iter={ITERATIONS}, tol=float("-inf")).fit(frame)
fitted.probas_.assign(value=fitted.labels_).to_csv(sys.argv[2])
{_CLOSING}"""
_OURS = f"""
import sys, time
started = time.perf_counter()
from crowdveil.cli import app
flags = ["--method", "dawid-skene", "--no-cache", "--json", "--param", "max_iter={ITERATIONS}", "--param", "tol=-1"]
app(["infer", sys.argv[1], "-o", sys.argv[2], *flags], standalone_mode=False)
{_CLOSING}"""


def whole_job(n: int, peer_name: str) -> Iterator[dict[str, Any]]:
    """Both with imports and all, each in a process of its own, the same number of iterations; ours without a cache."""
    source = _answers_file(n)
    _read(source)
    with tempfile.TemporaryDirectory() as folder:
        _tell(f"crowdveil infer, {n:,} rows, {ITERATIONS} iterations")
        ours = in_process(_OURS, source, Path(folder) / "ours.csv")
        theirs: list[float | None] = [None, None]
        if find_spec("crowdkit"):
            _tell(f"the same job in {peer_name}, some minutes")
            theirs = list(in_process(_THEIRS, source, Path(folder) / "peer.csv"))
    case = f"infer, CSV to CSV, text ids, {ITERATIONS} iterations"
    yield row(case, n, ours[0], theirs[0], peer_name, unit="s on the clock")
    yield row(f"{case}: peak memory", n, ours[1] / n, theirs[1] and theirs[1] / n, peer_name, unit="bytes per answer")


def _read(path: Path) -> None:
    """From the disk into memory, which otherwise whoever comes first would do for both."""
    with path.open("rb") as stream:
        while stream.read(1 << 24):
            pass


def write_answers(path: Path, reports: Reports) -> None:
    """Unprotected reports as a file of answers; a worker answers a question once, so chance repeats are left out."""
    _, first_rows = np.unique(reports.question.astype(np.int64) * reports.n_workers + reports.worker, return_index=True)
    table = reports.rows(np.sort(first_rows))
    columns = {
        "worker": coded_column(table.worker, table.workers.tolist()),
        "task": coded_column(table.question, table.questions.tolist()),
        "label": pa.array(np.array(table.domain.symbols)[table.report]),
    }
    write_table(path, columns)


def _answers_file(n: int) -> Path:
    """Made once for each size and kept among the temporary files: it is the same every time."""
    folder = Path(tempfile.gettempdir()) / f"crowdveil-bench-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"answers-{n}.csv"
    if not path.exists():
        _tell(f"writing {n:,} answers to {path}")
        unfinished = path.with_name(f"{os.getpid()}.csv")
        try:
            write_answers(unfinished, crowd(n, text_ids=True))
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return path


def _tell(what: str) -> None:
    sys.stderr.write(f"… {what}\n")
