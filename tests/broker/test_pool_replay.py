"""A paper's dataset collected live: SDK workers replay it in sittings by listed assignment over real HTTP.

RTE (Snow et al. 2008; CROWDVEIL_DATA) has 800 pairs of sentences, 164 workers and 8,000 answers, ten a pair. Without
the dataset a generated table of the same shape and a quarter of its size is replayed.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from broker.pool_scene import open_pool, pool_draft, protected_draft

from crowdveil.client import Broker, Worker
from crowdveil.errors import FileError
from crowdveil.files import data_folder

REDUNDANCY = 10
BATCH_SIZE = 50


def generated() -> tuple[list[tuple[str, str, str]], dict[str, str]]:
    """200 tasks, 41 workers of whom few give most answers, ten answers a task."""
    random = np.random.default_rng(8)
    n_tasks, n_workers = 200, 41
    truth = random.integers(0, 2, n_tasks)
    skill = random.uniform(0.6, 0.95, n_workers)
    weight = 1 / np.arange(1, n_workers + 1)
    rows = []
    for task in range(n_tasks):
        for worker in random.choice(n_workers, REDUNDANCY, replace=False, p=weight / weight.sum()):
            right = random.uniform() < skill[worker]
            rows.append((f"w{worker}", f"t{task}", str(truth[task] if right else 1 - truth[task])))
    return rows, {f"t{task}": str(value) for task, value in enumerate(truth)}


def dataset() -> tuple[list[tuple[str, str, str]], dict[str, str]]:
    """(worker, task, answer) and the truths."""
    try:
        folder = data_folder() / "rte"
    except FileError:
        return generated()
    with (folder / "answers.csv").open() as answers, (folder / "truth.csv").open() as truth:
        rows = [(row["worker"], row["task"], row["answer"]) for row in csv.DictReader(answers)]
        return rows, {row["task"]: row["truth"] for row in csv.DictReader(truth)}


def replay(address: str, home: Path, study: str, rows: list[tuple[str, str, str]], *, protected: bool) -> None:
    """Every worker of the dataset gives its answers on a device of its own, in as many batches as it takes."""
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    for worker, task, answer in rows:
        answers[worker][task] = answer

    def sit(name: str) -> int:
        mine = answers[name]
        with Worker(Broker(address), home / name) as worker:
            worker.sign_up(default_level="low" if protected else "none")
            worker.set_ceiling(study, 2000)
            # The first sitting ends after one batch; another device session goes on.
            first = worker.label(study, lambda task: mine[task.id], worker_code=name, one_by_one=protected)
        with Worker(Broker(address), home / name) as worker:
            rest = worker.label(study, lambda task: mine[task.id], batches=1000, worker_code=name, one_by_one=protected)
        sent = [*first, *rest]
        assert all(each.receipt["n_dropped"] == 0 for each in sent)
        return sum(len(each.reports) for each in sent)

    with ThreadPoolExecutor(4) as pool:
        n_sent = dict(zip(answers, pool.map(sit, answers), strict=True))
    assert n_sent == {name: len(tasks) for name, tasks in answers.items()}


@pytest.mark.parametrize("protected", [False, True], ids=["none", "epsilon 2"])
def test_a_dataset_is_replayed_live_and_labelled_as_offline(
    protected: bool, sqlite_server: Any, tmp_path: Path
) -> None:
    rows, truth = dataset()
    requester = sqlite_server.requester(f"replay {protected}")
    tasks = [{"id": task, "text": f"Pair {task}."} for task in dict.fromkeys(task for _, task, _ in rows)]
    pairs = [{"worker": worker, "task": task} for worker, task, _ in rows]
    rules = {
        "batch_size": BATCH_SIZE,
        "redundancy": REDUNDANCY,
        "max_reports": REDUNDANCY,
        "assignment": "listed",
        "tasks_about_items": True,
    }
    draft = (protected_draft if protected else pool_draft)(rules=rules, minimum_n=20)
    study = open_pool(requester, draft, tasks, pairs)
    replay(sqlite_server.address, tmp_path, study, rows, protected=protected)
    requester.close(study)

    # Every answer arrived once, and no task is above its bound.
    reports = requester.export(study, tmp_path / "reports.csv")
    with reports.open() as file:
        stored = list(csv.DictReader(file))
    assert Counter(row["question"] for row in stored) == Counter(task for _, task, _ in rows)
    assert max(Counter(row["question"] for row in stored).values()) == REDUNDANCY
    assert len({(row["worker"], row["question"]) for row in stored}) == len(rows)
    assert Counter(Counter(row["worker"] for row in stored).values()) == Counter(
        Counter(worker for worker, _, _ in rows).values()
    )
    if not protected:
        assert Counter((row["question"], row["report"]) for row in stored) == Counter(
            (task, answer) for _, task, answer in rows
        )

    # The labels are those that the command line infers from the same reports.
    with requester.export_labels(study, tmp_path / "labels.csv").open() as file:
        labels = {row["task"]: row["label"] for row in csv.DictReader(file)}
    command = [sys.executable, "-m", "crowdveil", "infer", str(reports), "-o", str(tmp_path / "offline.csv")]
    command += ["--method", "auto", "--no-cache", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    with (tmp_path / "offline.csv").open() as file:
        offline = {row["question"]: row["value"] for row in csv.DictReader(file)}
    accuracy = [np.mean([found[task] == value for task, value in truth.items()]) for found in (labels, offline)]
    assert accuracy[0] == accuracy[1], json.loads(done.stdout)["method"]
    assert accuracy[0] > (0.7 if protected else 0.85)

    check = sqlite_server.broker(sqlite_server.operator()).call("GET", "/operator/ledger-check")
    assert check == {"holds": True, "problems": []}
