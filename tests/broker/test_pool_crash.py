"""kill -9 while batches are leased and sent: nothing torn, nothing acknowledged lost, open batches come back."""

from __future__ import annotations

import csv
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from broker.pool_scene import numbered_tasks, open_pool, protected_draft
from waiting import until

from crowdveil.client import Broker, ProblemError, Worker

N_DEVICES = 3
N_KILLS = 3
N_TASKS = 60


def sit(address: str, home: Path, study: str, receipts: list[dict[str, Any]]) -> None:
    """Label until nothing is left, whatever happens to the broker; the SDK sends again what got no reply."""
    with Worker(Broker(address), home) as worker:
        _insist(lambda: worker.sign_up(default_level="low"))
        worker.set_ceiling(study, 1000)
        while sent := _insist(lambda: worker.label(study, lambda task: "1", one_by_one=True)):
            receipts += [each.receipt for each in sent]
        assert worker.ledger.loss("me").one_by_one["Does it follow?"].count == N_TASKS


def _insist(act: Any) -> Any:
    while True:
        try:
            return act()
        except ProblemError as refused:
            if refused.status not in (0, 502, 503):
                raise


def test_killing_the_broker_loses_no_batch_and_pays_none_twice(make_server: Any, tmp_path: Path) -> None:
    server = make_server()
    requester = server.requester("killed")
    rules = {"batch_size": 2, "redundancy": N_DEVICES, "max_reports": N_DEVICES, "tasks_about_items": True}
    study = open_pool(requester, protected_draft(rules=rules), numbered_tasks(N_TASKS))
    receipts: list[list[dict[str, Any]]] = [[] for _ in range(N_DEVICES)]
    devices = [
        threading.Thread(target=sit, args=(server.address, tmp_path / str(number), study, receipts[number]))
        for number in range(N_DEVICES)
    ]
    for device in devices:
        device.start()
    for kill in range(1, N_KILLS + 1):
        reached = kill * 15
        until(lambda reached=reached: sum(map(len, receipts)) >= reached)
        server.stop(signal.SIGKILL)
        server.start()
    for device in devices:
        device.join(120)
        assert not device.is_alive()
    sent = [receipt for each in receipts for receipt in each]
    assert sum(receipt["n_reports"] for receipt in sent) == N_TASKS * N_DEVICES
    progress = requester.progress(study)
    assert progress["taken"] == len(sent) == len({receipt["receipt"] for receipt in sent})
    assert progress["money"]["paid_cents"] == sum(receipt["pay_cents"] for receipt in sent)
    assert progress["held"] == 0
    check = server.broker(server.operator()).call("GET", "/operator/ledger-check")
    assert check == {"holds": True, "problems": []}
    requester.close(study)
    with requester.export(study, tmp_path / "reports.csv").open() as file:
        stored = Counter((row["worker"], row["question"]) for row in csv.DictReader(file))
    assert len(stored) == N_TASKS * N_DEVICES
    assert set(stored.values()) == {1}
