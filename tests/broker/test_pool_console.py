"""A pool in the console: its labels as a table and as files, in both languages, and its pages without a fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from broker.pool_scene import numbered_tasks, open_pool, pool_draft
from broker.test_console import COOKIE, Console

from crowdveil.client import Requester, Worker


def test_the_labels_of_a_pool_are_a_table_and_files(sqlite_server: Any, tmp_path: Path) -> None:
    token = sqlite_server.requester_token("pool console")
    requester, console = Requester(sqlite_server.broker(token)), Console(sqlite_server.address, token)
    tasks = [task | {"gold": "1"} for task in numbered_tasks(60)]
    tasks[0]["id"] = "<b>t0</b>"
    study = open_pool(requester, pool_draft(minimum_n=3, rules={"redundancy": 3, "batch_size": 50}), tasks)
    address = f"/console/studies/{study}"
    assert "Nothing is shown before 3 people have labelled" in console.get(f"{address}/results").text
    assert console.get(f"{address}/labels/csv").status_code == 409
    for number in range(3):
        with Worker(sqlite_server.broker(), tmp_path / str(number)) as worker:
            worker.sign_up(default_level="none")
            worker.label(study, lambda task: "1" if task.number % 3 else "0", batches=2)
    requester.close(study)
    shown = console.get(f"{address}/results").text
    assert "Of 60 tasks with a known truth 40 are labelled right." in shown
    assert "From 180 reports of 3 people" in shown
    assert shown.count("<tr role=") == 51
    assert "were not protected: their reports are the answers" in shown
    rest = console.get(f"{address}/results?after=50").text
    assert rest.count("<tr role=") == 11
    assert "&lt;b&gt;t0&lt;/b&gt;" in shown + rest
    assert "<b>t0</b>" not in shown + rest
    german = console.get(f"{address}/results", **{"Accept-Language": "de"}).text
    assert "Labels, die unsichersten zuerst" in german
    for kind in ("csv", "jsonl", "parquet"):
        assert console.get(f"{address}/labels/{kind}").status_code == 200
    assert console.get(f"{address}/labels/exe").status_code == 404
    console.http.cookies.clear()
    stranger = sqlite_server.requester_token("pool stranger")
    console.http.cookies.set(COOKIE, stranger, domain="127.0.0.1", path="/console/")
    assert console.get(f"{address}/results").status_code == 404
    assert console.get(f"{address}/labels/csv").status_code == 404
    console.http.close()


def test_the_other_pages_show_a_pool(sqlite_server: Any) -> None:
    token = sqlite_server.requester_token("pool pages")
    requester, console = Requester(sqlite_server.broker(token)), Console(sqlite_server.address, token)
    draft = requester.create(pool_draft())
    study = open_pool(requester, pool_draft(), numbered_tasks(4))
    pages = ["/console/", f"/console/studies/{draft}", f"/console/studies/{draft}/edit"]
    pages += [f"/console/studies/{study}", f"/console/studies/{study}/progress"]
    assert {page: console.get(page).status_code for page in pages} == dict.fromkeys(pages, 200)
    console.http.close()
