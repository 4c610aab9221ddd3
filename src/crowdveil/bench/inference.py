"""Truth inference beside crowd-kit: time per iteration, memory, end to end; and what scales within our own.

Times of one iteration are nanoseconds of processor time per answer, on one thread unless the case says otherwise.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from crowdveil.bench._measure import PER_WORKER, crowd, in_process, measure_cpu, per_iteration, row
from crowdveil.bench._whole_job import whole_job
from crowdveil.channel import identity
from crowdveil.domain import Scale
from crowdveil.inference import METHODS, DawidSkene, Method, method
from crowdveil.inference.engine.local import LocalEngine
from crowdveil.progress import progress_listener
from crowdveil.reports import Reports

PEER = "crowd-kit"
_PURE: dict[str, Any] = {"prior": "none"}
_ROUNDS = 3


def parts(quick: bool) -> dict[str, Callable[[], Iterable[dict[str, Any]]]]:
    """What can be measured by itself; `quick` takes seconds and proves little."""
    small, large, huge = (20_000, 200_000, 400_000) if quick else (1_000_000, 10_000_000, 50_000_000)
    return {
        "start-up": _start_up,
        "agreement": lambda: _agreement(min(small, 100_000)),
        "parity": lambda: (row for name in _CONVERGED for row in _parity(name, min(small, 4_000))),
        "integer-ids": lambda: [_iteration("dawid-skene", "DawidSkene", small, text_ids=False)],
        "text-ids": lambda: [_iteration("dawid-skene", "DawidSkene", small, text_ids=True)],
        "one-coin": lambda: [_iteration("one-coin", "OneCoinDawidSkene", small, text_ids=False)],
        "large": lambda: [_iteration("dawid-skene", "DawidSkene", large, text_ids=False, rounds=1)],
        "memory": lambda: [_memory(large)],
        "threads": lambda: [_threads(large)],
        "growth": lambda: _growth(small, huge),
        "others": lambda: (_alone(name, small) for name in _OTHERS),
        "whole-job": lambda: whole_job(large, _peer_name()),
    }


def cases(quick: bool) -> Iterator[dict[str, Any]]:
    """One row after the other."""
    for part in parts(quick).values():
        yield from part()


def _peer(kind: str) -> Callable[..., Any] | None:
    return getattr(import_module("crowdkit.aggregation"), kind) if find_spec("crowdkit") else None


def _peer_name() -> str:
    return PEER if find_spec("crowdkit") else f"{PEER} (not installed)"


def _frame(reports: Reports) -> Any:
    """The same answers as the data frame that crowd-kit wants."""
    columns = {
        "task": reports.questions[reports.question],
        "worker": reports.workers[reports.worker],
        "label": reports.report,
    }
    return import_module("pandas").DataFrame(columns)


def _ours(name: str, n_iter: int, *, threads: int = 1) -> Method:
    field_names = {field.name for field in fields(METHODS[name])}  # type: ignore[arg-type]
    precision = {"precision": "float32"} if "precision" in field_names else {}
    return method(name, max_iter=n_iter, tol=-1.0, engine=LocalEngine(threads=threads), **precision)


def _our_iteration(reports: Reports, name: str = "dawid-skene", *, rounds: int = 1) -> float:
    """Nanoseconds per answer, from fits with few and with many iterations."""
    _ours(name, 1).fit(reports)  # what must be compiled or loaded is not timed
    many = _iterations(reports)
    seconds = per_iteration(lambda n_iter: _ours(name, n_iter).fit(reports), 2, many, rounds=rounds)
    return seconds * 1e9 / len(reports)


def _median_iteration(reports: Reports, *, threads: int = 1) -> float:
    """Nanoseconds per answer, as the fit tells of its iterations: what it takes to begin one does not count at all."""
    ends: list[float] = []
    with progress_listener(lambda _: ends.append(time.perf_counter())):
        _ours("dawid-skene", _iterations(reports), threads=threads).fit(reports)
    return float(np.median(np.diff(ends))) * 1e9 / len(reports)


def _iterations(reports: Reports) -> int:
    """So many that what they take outweighs how unsteadily a fit begins."""
    return 2 + min(200, max(20, 200_000_000 // len(reports)))


def _their_iteration(peer: Callable[..., Any], frame: Any) -> float:
    seconds = per_iteration(lambda n_iter: peer(n_iter=n_iter, tol=-np.inf).fit(frame), 1, 3)
    return seconds * 1e9 / len(frame)


def _iteration(name: str, kind: str, n: int, *, text_ids: bool, rounds: int = _ROUNDS) -> dict[str, Any]:
    reports = crowd(n, text_ids=text_ids)
    peer, frame = _peer(kind), _frame(reports) if find_spec("crowdkit") else None
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(_our_iteration(reports, name))
        theirs += [] if peer is None else [_their_iteration(peer, frame)]
    case = f"{name}, one iteration, {'text' if text_ids else 'integer'} ids"
    result = row(case, n, min(ours), min(theirs) if theirs else None, _peer_name(), unit="ns per answer")
    return result | {"rounds": [peer / ours_ns for ours_ns, peer in zip(ours, theirs, strict=False)]}


def _agreement(n: int) -> Iterator[dict[str, Any]]:
    """How far our posteriors are from crowd-kit's without the prior, and whether single precision changes labels."""
    reports = crowd(n)
    double, single = (
        DawidSkene(max_iter=10, tol=-1.0, precision=precision, **_PURE).fit(reports)
        for precision in ("float64", "float32")
    )
    changed = int((double.value != single.value).sum())
    yield row("dawid-skene, labels that single precision changes", n, changed, None, "", unit="questions")
    peer = _peer("DawidSkene")
    case = "dawid-skene, largest difference of posteriors"
    if peer is None or double.posterior is None:
        yield row(case, n, np.nan, None, _peer_name(), unit="")
        return
    theirs = peer(n_iter=10, tol=-np.inf).fit(_frame(reports)).probas_
    theirs = theirs.reindex(index=range(reports.n_questions), columns=range(4)).fillna(0.0).to_numpy()
    difference = max(float(np.abs(double.posterior - theirs).max()), 1e-16)
    yield row(case, n, difference, 1e-8, "promised limit", unit="")


_CONVERGED: dict[str, tuple[str, dict[str, Any]]] = {
    "glad": ("GLAD", {"n_iter": 300, "tol": 1e-13, "m_step_max_iter": 200, "m_step_tol": 1e-12}),
    "mace": ("MACE", {"method": "em", "n_iter": 1000, "n_restarts": 1}),
}
"""crowd-kit's class and the settings with which it runs to convergence."""


def _parity(name: str, n: int) -> Iterator[dict[str, Any]]:
    """Posteriors and labels beside crowd-kit's where both have converged, and the processor time of both fits.

    The likelihood has several maxima, and the two programs may end at different ones: hence the median.
    """
    kind, settings = _CONVERGED[name]
    peer, reports = _peer(kind), crowd(n)
    if peer is None:
        yield row(f"{name}, median difference of posteriors", n, np.nan, None, _peer_name(), unit="")
        return
    converged = method(name, max_iter=20_000, tol=0.0)
    converged.fit(crowd(200))  # what must be compiled or loaded is not timed
    ours, theirs = (
        measure_cpu(lambda: converged.fit(reports)),
        measure_cpu(lambda: peer(**settings).fit(_frame(reports))),
    )
    yield row(f"{name}, fit to convergence", n, ours, theirs, _peer_name(), unit="s")
    estimate, probabilities = converged.fit(reports), peer(**settings).fit(_frame(reports)).probas_
    probabilities = probabilities.reindex(index=reports.questions.tolist(), columns=range(4)).fillna(0.0).to_numpy()
    difference = np.median(np.abs(estimate.posterior - probabilities).max(axis=1))
    yield row(
        f"{name}, median difference of posteriors", n, max(float(difference), 1e-16), 1e-6, "promised limit", unit=""
    )
    differ = int((probabilities.argmax(axis=1) != estimate.value).sum())
    yield row(f"{name}, labels that differ", n, differ, None, _peer_name(), unit="questions")


_START_UP = """
import os, sys, time
os.environ["NUMBA_CACHE_DIR"] = sys.argv[1]
from crowdveil.bench.inference import _crowd_for
from crowdveil.inference import method
name = sys.argv[2]
reports = _crowd_for(name, 2000)
started = time.process_time()
method(name, max_iter=5).fit(reports)
print(time.process_time() - started)
"""


def _start_up() -> Iterator[dict[str, Any]]:
    """Compiling on the first call ever, and loading what was compiled on the first call of a later process."""
    for name in ("dawid-skene", "channel-bp", "channel-em"):
        with tempfile.TemporaryDirectory() as folder:
            for call, limit in (("first call", 5.0), ("later processes", 0.6)):
                (seconds,) = in_process(_START_UP, folder, name)
                yield row(f"{name}, compiling, {call}", 2000, seconds, limit, "promised limit", unit="s")


_MEMORY = """
import resource, sys
n, ours = int(sys.argv[1]), sys.argv[2] == "ours"
from crowdveil.bench._measure import crowd
from crowdveil.bench.inference import _frame, _ours, _peer
table = crowd(n)
small = crowd(2000)
if ours:
    _ours("dawid-skene", 2, threads=2).fit(small)
    work = lambda: _ours("dawid-skene", 3, threads=2).fit(table)
else:
    _peer("DawidSkene")(n_iter=1).fit(_frame(small))
    table = _frame(table)
    work = lambda: _peer("DawidSkene")(n_iter=3, tol=float("-inf")).fit(table)
def held():
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * resource.getpagesize()
import gc; gc.collect()
# The high-water mark is set back, so that making the data does not hide the fit.
with open("/proc/self/clear_refs", "w") as stream:
    stream.write("5")
before = held()
work()
with open("/proc/self/status") as stream:
    peak = next(int(line.split()[1]) * 1024 for line in stream if line.startswith("VmHWM"))
print((peak - before) / n)
"""


def _memory(n: int) -> dict[str, Any]:
    """The most that a fit takes on top of its data, two threads for ours."""
    ours = in_process(_MEMORY, n, "ours")[0]
    theirs = in_process(_MEMORY, n, "peer")[0] if find_spec("crowdkit") else None
    return row("dawid-skene, peak extra memory", n, ours, theirs, _peer_name(), unit="bytes per answer")


def _threads(n: int) -> dict[str, Any]:
    reports = crowd(n)
    two, one = [], []
    # More turns than elsewhere: a second processor is more often somebody else's for a while.
    for _ in range(2 * _ROUNDS):
        two.append(_median_iteration(reports, threads=2))
        one.append(_median_iteration(reports))
    return row("dawid-skene, two threads", n, min(two), min(one), "one thread", unit="ns per answer on the clock")


_OTHERS = ("weighted-vote", "channel-bp", "weighted-mean", "channel-em")


def _alone(name: str, n: int) -> dict[str, Any]:
    """A method that crowd-kit does not have: what an iteration costs."""
    ours = _our_iteration(_crowd_for(name, n), name, rounds=2)
    return row(f"{name}, one iteration", n, ours, None, "", unit="ns per answer")


def _crowd_for(name: str, n: int) -> Reports:
    """The crowd that is measured; for a numeric method its options are levels."""
    reports = crowd(n)
    if not METHODS[name].numeric:
        return reports
    levels = Scale(1, reports.domain.size)
    return replace(reports, domain=levels, channels=(identity(levels),))


def _growth(small: int, huge: int) -> Iterator[dict[str, Any]]:
    """The ratio is how much more an answer costs in the larger table: it should be little above 1.

    More questions may come with more workers, or the same ones answer more; random access to the workers' tables costs
    nothing only in the second case, where these stay in the processor's cache.
    """
    for workers, n_workers in (("as many times the workers", None), ("the same workers", small // PER_WORKER)):
        tables = crowd(small), crowd(huge, n_workers=n_workers)
        few, many = (_median_iteration(table) for table in tables)
        case = f"dawid-skene, cost per answer, {workers} (peer: {small} answers; ratio: growth)"
        yield row(case, huge, many, few, "ours", unit="ns per answer") | {"ratio": many / few}
