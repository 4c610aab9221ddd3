"""Threads that share out one loop: over blocks in a pass, over workers between two passes.

Who owns the threads says so once (`crew`); who has a loop to share out need not know how many there are. A thread of
the crew has no crew of its own, so that loops inside loops are not shared out again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
LEAST = 1 << 16
"""A thread takes at least so many numbers: waking it for fewer costs more than it brings."""


@dataclass(frozen=True, slots=True)
class _Crew:
    pool: ThreadPoolExecutor
    size: int


_CREW: ContextVar[_Crew | None] = ContextVar("crew", default=None)


@contextmanager
def crew(size: int) -> Iterator[None]:
    """Loops that are shared out inside have so many threads; where there is a crew already, it does the work."""
    if size <= 1 or _CREW.get() is not None:
        yield
        return
    with ThreadPoolExecutor(size) as pool:
        token = _CREW.set(_Crew(pool, size))
        try:
            yield
        finally:
            _CREW.reset(token)


def processors() -> int:
    """How many this process may use; where the system does not say which, all there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pool_map(work: Callable[[int], T], n: int) -> Sequence[T]:
    """work(0), …, work(n − 1), in this order whoever is done first."""
    found = _CREW.get()
    if found is None or n == 1:
        return [work(index) for index in range(n)]
    return list(found.pool.map(work, range(n)))


def parallel_slices(work: Callable[[slice], object], n: int, row: int) -> None:
    """work(rows) for runs of rows that together are all `n`; `row` numbers make one."""
    found = _CREW.get()
    parts = 1 if found is None else max(1, min(found.size, n * row // LEAST))
    ends = [n * part // parts for part in range(parts + 1)]
    pool_map(lambda part: work(slice(ends[part], ends[part + 1])), parts)
