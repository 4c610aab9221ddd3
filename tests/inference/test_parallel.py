"""Loops that threads share out: every row once, the same bits, no thread that waits for itself."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Event, current_thread, main_thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.inference.kernels import em as kernels
from crowdveil.inference.kernels import softmax as share_kernels
from crowdveil.inference.parallel import LEAST, crew, parallel_slices, pool_map
from crowdveil.inference.protocols import add

WAIT = 30


@given(st.integers(0, 5 * LEAST), st.integers(1, 5), st.sampled_from([1, 3, LEAST // 2, LEAST, 2 * LEAST]))
def test_every_row_is_shared_out_once(n: int, size: int, row: int) -> None:
    found: list[slice] = []
    with crew(size):
        parallel_slices(found.append, n, row)
    found.sort(key=lambda part: part.start)
    assert [part.start for part in found[1:]] == [part.stop for part in found[:-1]]
    assert (found[0].start, found[-1].stop) == (0, n)
    assert len(found) == max(1, min(size, n * row // LEAST))


def test_a_crew_works_at_the_same_time_and_ends() -> None:
    meeting = Barrier(2)
    with crew(2):
        assert sorted(pool_map(lambda _: meeting.wait(WAIT), 2)) == [0, 1]
        parallel_slices(lambda _: meeting.wait(WAIT), 2, LEAST)
    assert pool_map(lambda _: current_thread(), 2) == [main_thread(), main_thread()]


def test_results_come_in_order_whoever_is_done_first() -> None:
    second_is_done = Event()

    def work(index: int) -> int:
        if index == 0:
            assert second_is_done.wait(WAIT)
        else:
            second_is_done.set()
        return index

    with crew(2):
        assert pool_map(work, 2) == [0, 1]


def test_loops_inside_loops_stay_with_their_thread() -> None:
    def inside(index: int) -> bool:
        return set(pool_map(lambda _: current_thread(), 5)) == {current_thread()}

    with crew(2), crew(3):
        assert all(pool_map(inside, 4))


def test_what_goes_wrong_in_a_thread_is_heard() -> None:
    def fail(rows: slice) -> None:
        if rows.start:
            raise ZeroDivisionError

    with crew(2), pytest.raises(ZeroDivisionError):
        parallel_slices(fail, 2, LEAST)


def _logs(counts: np.ndarray) -> np.ndarray:
    logs, seen = np.empty_like(counts), np.empty((len(counts), counts.shape[2]))
    kernels.log_shares(counts, np.full(counts.shape[1:], 0.25), logs, seen)
    return np.concatenate((logs.ravel(), seen.ravel()))


def _sums(counts: np.ndarray) -> np.ndarray:
    total = add({"counts": counts.copy(), "one": np.float64(1)}, {"counts": counts / 3, "one": np.float64(2)})
    assert total["one"] == 3
    return total["counts"]


@pytest.mark.parametrize("work", [_logs, _sums])
@pytest.mark.parametrize("n_workers", [0, 1, 20_001])
def test_threads_between_passes_give_the_same_bits(work: Callable[[np.ndarray], np.ndarray], n_workers: int) -> None:
    counts = np.random.default_rng(n_workers).gamma(0.5, size=(n_workers, 4, 4)).astype(np.float32)
    alone = work(counts)
    with crew(3):
        np.testing.assert_array_equal(work(counts), alone)


def test_a_thread_takes_the_shares_of_its_own_workers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[slice] = []
    real = share_kernels.pieces
    monkeypatch.setattr(share_kernels, "pieces", lambda *about: taken.extend(found := real(*about)) or found)
    counts = np.ones((3 * LEAST // 16, 4, 4), dtype=np.float32)
    with crew(3):
        _logs(counts)
    assert sum(part.stop - part.start for part in taken) == len(counts)
