"""How cases are measured: turn by turn in one process, or each in a process of its own for memory."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import identity
from crowdveil.domain import Choices
from crowdveil.reports import Reports

OPTIONS = Choices(("a", "b", "c", "d"))
PER_QUESTION, PER_WORKER = 10, 200


def crowd(n: int, *, text_ids: bool = False, n_workers: int | None = None) -> Reports:
    """`n` unprotected answers, ten a question, about two hundred a worker unless told otherwise, in no order."""
    rng = np.random.default_rng(n)
    n_questions, n_workers = n // PER_QUESTION, n_workers or n // PER_WORKER
    question = rng.permutation(np.repeat(np.arange(n_questions, dtype=np.int32), PER_QUESTION))
    worker = rng.integers(0, n_workers, n, dtype=np.int32)
    truth = rng.integers(0, 4, n_questions, dtype=np.int32)
    right = rng.random(n, dtype=np.float32) < rng.uniform(0.45, 0.95, n_workers).astype(np.float32)[worker]
    answer = np.where(right, truth[question], rng.integers(0, 4, n, dtype=np.int32))
    ids = [_texts("worker", n_workers), _texts("task", n_questions)] if text_ids else [n_workers, n_questions]
    workers, questions = (np.arange(each) if isinstance(each, int) else each for each in ids)
    return Reports(
        worker, question, answer, np.zeros(n, dtype=np.int16), workers, questions, (identity(OPTIONS),), OPTIONS
    )


def _texts(name: str, n: int) -> NDArray[Any]:
    texts = np.empty(n, dtype=object)
    texts[:] = [f"{name}-{code * 2654435761 % 2**32:08x}-{code}" for code in range(n)]
    return texts


def measure_cpu(work: Callable[[], object]) -> float:
    """Seconds of processor time: other programs on the machine then count little."""
    started = time.process_time()
    work()
    return time.process_time() - started


def per_iteration(fit: Callable[[int], object], few: int, many: int, *, rounds: int = 1) -> float:
    """Seconds for one iteration: what `many` take more than `few`, so that loading and layout do not count.

    Of several rounds the fastest of either count, not the smallest difference: a slow start would make that too small.
    """
    times = [(measure_cpu(lambda: fit(few)), measure_cpu(lambda: fit(many))) for _ in range(rounds)]
    short, long = min(short for short, _ in times), min(long for _, long in times)
    # On a machine so busy that few iterations took longer than many, loading and layout count against us.
    return (long - short) / (many - few) if long > short else long / many


def in_process(script: str, *arguments: object) -> list[float]:
    """Run a script in a fresh interpreter and read the numbers it prints on its last line."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return [float(number) for number in done.stdout.split("\n")[-2].split()]


def row(case: str, n: int, ours: float, peer: float | None, peer_name: str, *, unit: str) -> dict[str, Any]:
    """A row in which less is better: the ratio says how many times less ours takes."""
    ratio = None if peer is None else peer / ours
    return {"case": case, "n": n, "ours": ours, "peer": peer, "peer_name": peer_name, "ratio": ratio, "unit": unit}
