"""The whole story over real HTTP: a requester asks, 200 workers of the SDK answer, everything adds up, the key dies."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from crowdveil.client import ProblemError, Worker
from crowdveil.entropy import Keystream
from crowdveil.files.reports import read_reports

pytestmark = pytest.mark.slow
N_WORKERS = 200


def test_a_study_from_draft_to_closed(server: Any, make_draft: Any, tmp_path: Path) -> None:
    requester = server.requester("Ada's lab")
    levels = [
        {"name": "none", "mechanism": "none", "pay_cents": 80},
        {"name": "low", "mechanism": "randomized-response", "epsilon": "3", "pay_cents": 40},
        {"name": "medium", "mechanism": "randomized-response", "epsilon": "2", "pay_cents": 20},
    ]
    study = requester.create(make_draft(levels=levels))
    requester.open(study)
    with pytest.raises(ProblemError) as early:
        requester.results(study)
    assert early.value.code == "below-minimum"

    rng = random.Random(6)
    crowd = [
        (number, rng.choice(["none", "low", "medium"]), "yes" if rng.random() < 0.3 else "no", rng.randint(1, 5))
        for number in range(N_WORKERS)
    ]

    def take_part(person: tuple[int, str, str, int]) -> tuple[str, dict[str, Any]]:
        number, level, ill, days = person
        broker = server.broker()
        with Worker(broker, tmp_path / f"w{number}", epsilon_cap=8, entropy=Keystream(number)) as worker:
            worker.sign_up(default_level=level)
            sent = worker.answer(study, {"ill": ill, "days": days})
            again = worker.answer(study, {"ill": ill, "days": days})
            assert again == sent
            return broker.token, sent.receipt

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(take_part, crowd))
    assert len({receipt["receipt"] for _, receipt in told}) == N_WORKERS

    pay = {"none": 80, "low": 40, "medium": 20}
    owed = sum(pay[level] for _, level, _, _ in crowd)
    progress = requester.progress(study)
    assert (progress["taken"], progress["held"]) == (N_WORKERS, 0)
    assert progress["money"]["paid_cents"] == owed == sum(receipt["pay_cents"] for _, receipt in told)
    assert progress["money"]["commission_cents"] == sum(pay[level] // 10 for _, level, _, _ in crowd)

    operator = server.broker(server.operator())
    batch = operator.call("POST", "/operator/payouts")
    assert batch["cents"] >= owed
    assert operator.call("POST", "/operator/payouts")["cents"] == 0
    statement = server.broker(told[0][0]).call("GET", "/workers/me/payments")
    assert statement["balance_cents"] == 0
    assert statement["paid_out"][0]["cents"] == told[0][1]["pay_cents"]

    with Worker(server.broker(), tmp_path / "w0") as first:
        first.withdraw(study)
        first.withdraw(study)
        assert first.payments()["earned"][0]["cents"] == told[0][1]["pay_cents"]
        with pytest.raises(ProblemError) as twice:
            first.answer(study, {"ill": "no", "days": 1})
        assert twice.value.code == "withdrawn"

    key = server.home / "study-keys" / study
    assert key.exists()
    requester.close(study)
    assert not key.exists()

    results = requester.results(study)
    assert results["n"] == N_WORKERS - 1
    assert results["unprotected"] == sum(level == "none" for _, level, _, _ in crowd[1:])
    assert "ε ≤ 2 per value" in results["privacy"]
    share = sum(ill == "yes" for _, _, ill, _ in crowd[1:]) / (N_WORKERS - 1)
    mean = sum(days for *_, days in crowd[1:]) / (N_WORKERS - 1)
    by_question = {each["question"]: each for part in results["parts"] for each in part["questions"]}
    _check_within(by_question, share, mean)

    assert [part["questions"] for part in requester.export_parts(study)] == [["ill"], ["days"]]
    for kind in ("csv", "parquet"):
        reports = read_reports(requester.export(study, tmp_path / f"reports.{kind}", part=0))
        assert len(reports) == N_WORKERS - 1
        assert len(reports.channels) == 3
    assert operator.call("GET", "/operator/ledger-check") == {"holds": True, "problems": []}


def _check_within(by_question: dict[str, Any], share: float, mean: float) -> None:
    """The draws are seeded, so this holds or fails for good."""
    ill, days = by_question["ill"], by_question["days"]
    assert ill["n_reports"] == days["n_reports"] == N_WORKERS - 1
    shares = {each["option"]: each for each in ill["shares"]}
    assert shares["yes"]["low"] <= share <= shares["yes"]["high"]
    assert shares["yes"]["high"] - shares["yes"]["low"] < 0.25
    assert days["low"] <= mean <= days["high"]
    assert days["high"] - days["low"] < 0.8
    assert sum(each["share"] for each in days["shares"]) == pytest.approx(1, abs=1e-4)
