"""Channels of drafts are bounded, reused, and computed where they keep nobody waiting."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from broker import plain
from broker.scene import refused


def scales(n: int, n_levels: int) -> list[dict[str, Any]]:
    return [
        {"id": f"q{low}", "text": "?", "domain": {"type": "scale", "low": str(low), "high": str(low + n_levels - 1)}}
        for low in range(n)
    ]


LAPLACE = [{"name": "medium", "mechanism": "discrete-laplace", "epsilon": "3", "pay_cents": 1}]


@pytest.fixture
def make(django_here: Path, make_draft: Any) -> Any:
    from crowdveil.broker.studies.draft import Draft

    return lambda **changes: Draft.model_validate(make_draft(**changes))


def test_a_draft_of_too_many_table_cells_is_refused(sqlite_server: Any, make_draft: Any) -> None:
    token = {"Authorization": f"Bearer {sqlite_server.requester_token('many cells')}"}
    address = f"{sqlite_server.address}/api/v1/requester/studies"
    draft = make_draft(questions=scales(200, 900), levels=LAPLACE)
    reply = plain.post(address, json=draft, headers=token, timeout=30)
    assert reply.status_code == 422
    assert "2,100,000 table cells together; got 162,000,000; ask several questions" in reply.json()["detail"]


def test_the_largest_ordinary_drafts_are_allowed(make: Any) -> None:
    from crowdveil.broker.studies.channels import check_table_cells

    check_table_cells(make(questions=scales(200, 101), protects_participation=True))
    check_table_cells(make(questions=scales(2, 1000)))


def test_equal_channels_are_one(make: Any) -> None:
    from crowdveil.broker.studies.channels import build_channels

    first, second = make(questions=scales(2, 7), levels=LAPLACE), make(questions=scales(1, 7), levels=LAPLACE)
    channels = build_channels(first, first.levels[0])
    assert build_channels(second, second.levels[0])["q0"] is channels["q0"]
    assert channels["q1"] is not channels["q0"]
    hidden = make(questions=scales(1, 7), levels=LAPLACE, protects_participation=True, goal="truth")
    assert build_channels(hidden, hidden.levels[0])["q0"].protects_participation


def test_the_cache_forgets_the_oldest_beyond_its_cells() -> None:
    from crowdveil.broker.studies.channel_cache import CellCache

    cache: CellCache[int] = CellCache(lambda cells: cells, max_cells=10_000)
    for cells in (3000, 3001, 3002):
        cache.put(cells, cells)
    assert [cache.get(cells) for cells in (3000, 3001, 3002)] == [None, 3001, 3002]
    cache.put("all", 20_000)
    assert cache.get("all") is None


def test_a_full_pool_refuses_at_once(django_here: Path) -> None:
    from crowdveil.broker.compute_pool import MAX_JOBS, compute

    release = threading.Event()
    with ThreadPoolExecutor(MAX_JOBS) as requests:
        waiting = [requests.submit(compute, release.wait) for _ in range(MAX_JOBS)]
        try:
            while sum(job.running() for job in waiting) < MAX_JOBS or not _full():
                time.sleep(0.001)
            with refused("not-ready"):
                compute(lambda: 1)
        finally:
            release.set()
        assert all(job.result() for job in waiting)
    assert compute(lambda: 1) == 1


def _full() -> bool:
    from crowdveil.broker.compute_pool import _places

    return not _places._value


def test_work_whose_client_has_gone_ends_and_frees_its_place(django_here: Path) -> None:
    from django.http import HttpRequest, HttpResponse

    from crowdveil.broker.compute_pool import MAX_JOBS, RequestTimeLimit, _places, compute
    from crowdveil.progress import report_progress

    gone, ended = threading.Event(), threading.Event()

    def work() -> None:
        gone.set()
        try:
            while True:
                report_progress("steps", 1)
        finally:
            ended.set()

    def respond(request: HttpRequest) -> HttpResponse:
        compute(work)
        return HttpResponse()

    request = HttpRequest()
    request.META["waitress.client_disconnected"] = gone.is_set
    with refused("not-ready"):
        RequestTimeLimit(respond)(request)
    assert ended.wait(10)
    while _places._value < MAX_JOBS:
        time.sleep(0.001)


def test_computing_rho_can_be_stopped(make: Any) -> None:
    """One channel of 1,000 levels takes up to 15 s."""
    from crowdveil.domain import Scale
    from crowdveil.mechanisms import mechanism
    from crowdveil.progress import Step, progress_listener

    def stop(step: Step) -> None:
        raise InterruptedError

    channel = mechanism("discrete-laplace", epsilon=1).channel(Scale(1, 9))  # type: ignore[attr-defined]
    with progress_listener(stop), pytest.raises(InterruptedError):
        _ = channel.guarantee
