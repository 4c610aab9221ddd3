"""A pool of tasks from its list to its labels: batches in several sittings, each charged, drawn and paid once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from broker.pool_scene import numbered_tasks, open_pool, pool_draft, protected_draft

from crowdveil.canonical_json import sha256_hex
from crowdveil.client import Broker, ProblemError, StudyError, Worker
from crowdveil.errors import BudgetError, InputError

N_TASKS = 10


def even(task: Any) -> str:
    """Tasks with an even number are true."""
    return "1" if task.number % 2 == 0 else "0"


@pytest.fixture(scope="module")
def requester(sqlite_server: Any) -> Any:
    return sqlite_server.requester("pool lab")


@pytest.fixture
def new_worker(sqlite_server: Any, tmp_path: Path) -> Any:
    made: list[Worker] = []

    def make(level: str = "low", epsilon_cap: float = 100.0) -> Worker:
        worker = Worker(sqlite_server.broker(), tmp_path / f"w{len(made)}", epsilon_cap=epsilon_cap)
        worker.sign_up(default_level=level)
        made.append(worker)
        return worker

    yield make
    for worker in made:
        worker.close()


class refused:
    """The broker refuses with this code."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __enter__(self) -> None:
        self._raises = pytest.raises(ProblemError)
        self._found = self._raises.__enter__()

    def __exit__(self, *details: Any) -> bool:
        caught = bool(self._raises.__exit__(*details))
        assert self._found.value.code == self._code, str(self._found.value)
        return caught


def test_a_pool_is_labelled_in_several_sittings_and_yields_labels(
    requester: Any, new_worker: Any, tmp_path: Path, sqlite_server: Any
) -> None:
    study = open_pool(requester, pool_draft(rules={"redundancy": 3}), numbered_tasks(N_TASKS))
    workers = [new_worker("none") for _ in range(3)]
    seen: list[set[int]] = [set() for _ in workers]
    for number, worker in enumerate(workers):
        first = worker.label(study, even)
        again = worker.label(study, even, batches=5)
        for sent in (*first, *again):
            tasks = {report["task"] for report in sent.reports}
            assert not tasks & seen[number], "a task came twice to a worker"
            seen[number] |= tasks
            assert sent.receipt["n_dropped"] == 0
        # A last batch of two tasks pays its share of a batch of four.
        assert [sent.receipt["pay_cents"] for sent in (*first, *again)] == [8, 8, 4]
        if number == 0:
            with refused("below-minimum"):
                requester.labels(study)
    assert all(tasks == set(range(N_TASKS)) for tasks in seen)
    requester.close(study)
    page = requester.labels(study, order="task", limit=3)
    assert page["privacy"] == "9 of 9 batches were not protected: their reports are the answers (level none)."
    assert [(item["task"], item["label"], item["n_reports"]) for item in page["items"]] == [
        ("t0", "1", 3),
        ("t1", "0", 3),
        ("t2", "1", 3),
    ]
    assert (page["n_workers"], page["n_reports"], page["next"], page["final"]) == (3, 30, 3, True)
    for kind in ("csv", "jsonl", "parquet"):
        path = requester.export_labels(study, tmp_path / f"labels.{kind}")
        assert path.stat().st_size > 0
    rows = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    assert [row["label"] for row in rows] == [str(1 - number % 2) for number in range(N_TASKS)]
    money = requester.progress(study)["money"]
    assert (money["paid_cents"], money["held_cents"]) == (3 * 20, 0)
    check = sqlite_server.broker(sqlite_server.operator()).call("GET", "/operator/ledger-check")
    assert check == {"holds": True, "problems": []}


def test_fewest_reports_come_first(requester: Any, new_worker: Any) -> None:
    study = open_pool(requester, pool_draft(), numbered_tasks(8))
    first = {report["task"] for report in new_worker("none").label(study, even)[0].reports}
    second = {report["task"] for report in new_worker("none").label(study, even)[0].reports}
    assert len(first) == len(second) == 4
    assert not first & second


def test_protected_participation_reports_every_task_of_a_batch(requester: Any, new_worker: Any) -> None:
    study = open_pool(requester, protected_draft(), numbered_tasks(4))
    worker = new_worker()
    (sent,) = worker.label(study, lambda task: None)
    assert len(sent.reports) == 4
    # Exactly what the definition says of a full batch, to the nano.
    level = worker.study(study).levels["low"]
    assert sent.receipt["charge"] == level.charge
    assert worker._storage.spent("me").epsilon == level.charge["epsilon_nano"]
    mirrored = worker._account.call("GET", "/workers/me")["budget"]
    assert mirrored["epsilon_spent_nano"] == level.charge["epsilon_nano"]


def test_visible_participation_reports_and_charges_answered_tasks_only(requester: Any, new_worker: Any) -> None:
    study = open_pool(requester, pool_draft(), numbered_tasks(4))
    worker = new_worker()
    (sent,) = worker.label(study, lambda task: "1" if task.number < 2 else None)
    assert [report["task"] for report in sent.reports] == [0, 1]
    assert sent.receipt["charge"]["reports"] == 2
    assert sent.receipt["pay_cents"] == 10


def test_answers_one_by_one_need_tasks_about_items_and_a_ceiling(requester: Any, new_worker: Any) -> None:
    about_workers = open_pool(requester, protected_draft(), numbered_tasks(8))
    about_items = open_pool(requester, protected_draft(rules={"tasks_about_items": True}), numbered_tasks(8))
    worker = new_worker(epsilon_cap=1.0)
    with pytest.raises(InputError, match="about the worker"):
        worker.label(about_workers, even, one_by_one=True)
    with pytest.raises(BudgetError, match="ceiling"):
        worker.label(about_items, even, one_by_one=True)
    epsilon = worker.study(about_items).levels["low"].charge["epsilon_nano"]
    # For one batch and not for two; a nano less would be too little.
    worker.set_ceiling(about_items, (epsilon - 1) / 1e9)
    with pytest.raises(BudgetError):
        worker.label(about_items, even, one_by_one=True)
    worker.set_ceiling(about_items, (epsilon + 1) / 1e9)
    (sent,) = worker.label(about_items, even, one_by_one=True)
    assert sent.receipt["accounting"] == "one-by-one"
    with pytest.raises(BudgetError):
        worker.label(about_items, even, one_by_one=True)
    loss = worker.ledger.loss("me")
    assert (loss.epsilon, loss.one_by_one["Does it follow?"].count) == (0, 4)
    assert "4 answers protected one by one at ε 2, outside your cap" in str(loss)
    assert worker._account.call("GET", "/workers/me")["budget"]["epsilon_spent_nano"] == 0
    listed = worker._account.call("GET", "/workers/me/export")["one_by_one"]
    assert [(line["count"], line["epsilon_nano"]) for line in listed] == [(4, epsilon // 4)]


def test_an_open_batch_comes_back_and_one_given_back_does_not(requester: Any, new_worker: Any) -> None:
    study = open_pool(requester, pool_draft(), numbered_tasks(8))
    worker = new_worker("none")
    request = {"level": "none", "study_sha256": worker.study(study).sha256}
    first = worker._account.call("POST", f"/studies/{study}/batches", request)
    again = worker._account.call("POST", f"/studies/{study}/batches", request)
    assert again["batch"] == first["batch"]
    assert again["tasks"] == first["tasks"]
    worker._account.call("DELETE", f"/studies/{study}/batches/{first['batch']}")
    assert requester.progress(study)["held"] == 0
    other = worker._account.call("POST", f"/studies/{study}/batches", request)
    assert not {task["number"] for task in first["tasks"]} & {task["number"] for task in other["tasks"]}


def test_a_retry_gets_the_same_receipt_and_pays_once(requester: Any, new_worker: Any) -> None:
    study = open_pool(requester, pool_draft(), numbered_tasks(4))
    worker = new_worker("none")
    (sent,) = worker.label(study, even)
    stored = json.loads(worker._storage.kept("me", f"batch {study} {sent.receipt['batch']}"))
    path = f"/studies/{study}/batches/{sent.receipt['batch']}/submission"
    again = worker._account.call("POST", path, stored["body"], Idempotency_Key=stored["idempotency_key"])
    assert again == sent.receipt
    assert requester.progress(study)["money"]["paid_cents"] == 8
    with refused("idempotency-conflict"):
        other = stored["body"] | {"withdrawal_sha256": "0" * 64}
        worker._account.call("POST", path, other, Idempotency_Key=stored["idempotency_key"])
    with refused("already-submitted"):
        worker._account.call("POST", path, other, Idempotency_Key="another-key-of-mine")


def test_a_batch_is_withdrawn_by_its_key_and_pay_stays(requester: Any, new_worker: Any) -> None:
    study = open_pool(requester, pool_draft(minimum_n=3, rules={"redundancy": 3}), numbered_tasks(8))
    worker, *others = (new_worker("none") for _ in range(3))
    worker.label(study, even, batches=2)
    worker.withdraw(study)
    assert worker.payments()["balance_cents"] == 16
    for other in others:
        other.label(study, even, batches=2)
    requester.close(study)
    with refused("below-minimum"):
        requester.labels(study)


def test_listed_assignment_gives_each_code_its_tasks(requester: Any, new_worker: Any) -> None:
    pairs = [{"worker": "ada", "task": f"t{number}"} for number in (1, 3, 5)] + [{"worker": "bob", "task": "t0"}]
    draft = pool_draft(rules={"assignment": "listed", "batch_size": 2})
    study = open_pool(requester, draft, numbered_tasks(6), pairs)
    ada, bob = new_worker("none"), new_worker("none")
    sent = ada.label(study, even, batches=9, worker_code="ada")
    assert [[report["task"] for report in each.reports] for each in sent] == [[1, 3], [5]]
    with refused("not-invited"):
        bob.label(study, even, worker_code="ada")
    with refused("not-invited"):
        bob.label(study, even, worker_code="cy")
    assert len(bob.label(study, even, worker_code="bob")) == 1


def test_a_task_at_its_bound_is_dropped_and_the_batch_is_paid_whole(requester: Any, new_worker: Any) -> None:
    """Listed for more workers than the bound lets report: the last one is paid and dropped."""
    pairs = [{"worker": f"w{n}", "task": f"t{task}"} for n in range(2) for task in range(2)]
    pairs += [{"worker": "late", "task": "t1"}, {"worker": "late", "task": "t2"}]
    draft = pool_draft(rules={"assignment": "listed", "redundancy": 1, "max_reports": 2})
    study = open_pool(requester, draft, numbered_tasks(3), pairs)
    late, (first, second) = new_worker("none"), (new_worker("none"), new_worker("none"))

    def answer_slowly(task: Any) -> str:
        """While the late worker thinks, the others reach the bound of task 1."""
        if task.number == 1:
            first.label(study, even, worker_code="w0")
            second.label(study, even, worker_code="w1")
        return even(task)

    (sent,) = late.label(study, answer_slowly, worker_code="late")
    assert (sent.receipt["n_reports"], sent.receipt["n_dropped"], sent.receipt["pay_cents"]) == (1, 1, 4)
    requester.close(study)
    counts = {item["task"]: item["n_reports"] for item in requester.labels(study)["items"]}
    assert counts == {"t0": 2, "t1": 2, "t2": 1}


def test_certain_tasks_leave_the_pool(requester: Any, new_worker: Any) -> None:
    """With a stop rule; updates are made by the background jobs once enough workers came."""
    from waiting import until

    rule = {"probability": "0.5", "min_reports": 2}
    study = open_pool(
        requester, pool_draft(rules={"redundancy": 50, "max_reports": 50, "stop": rule}), numbered_tasks(4)
    )
    for _ in range(3):
        new_worker("none").label(study, even)

    def updated() -> bool:
        try:
            return bool(requester.labels(study)["update"])
        except ProblemError:
            return False

    until(updated)
    late = new_worker("none")
    until(lambda: late.label(study, even) == [])
    assert requester.labels(study)["n_certain"] == 4


BAD_LISTS = {
    "two tasks of one id": ([*numbered_tasks(3), {"id": "t1", "text": "again"}], None, "task 4 has the id 't1'"),
    "a truth that is no option": ([{"id": "a", "text": "x", "gold": "7"}], None, "task 1: the known truth"),
    "pairs without a listed assignment": (numbered_tasks(2), [{"worker": "ada", "task": "t0"}], "listed assignment"),
    "a text too long": ([{"id": "a", "text": "x" * 6000}], None, "at most 5000"),
}


@pytest.mark.parametrize("name", BAD_LISTS)
def test_a_bad_list_is_refused_whole(requester: Any, name: str) -> None:
    tasks, pairs, sentence = BAD_LISTS[name]
    study = requester.create(pool_draft())
    requester.upload_tasks(study, numbered_tasks(5))
    with pytest.raises(ProblemError, match=sentence):
        requester.upload_tasks(study, tasks, pairs)
    requester.open(study)
    assert requester._broker.call("GET", f"/studies/{study}")["definition"]["pool"]["n_tasks"] == 5


def test_a_pool_without_tasks_does_not_open_and_one_of_another_kind_has_none(requester: Any, make_draft: Any) -> None:
    study = requester.create(pool_draft())
    with refused("wrong-state"):
        requester.open(study)
    with refused("invalid"):
        requester.revise(study, make_draft())
    with refused("wrong-state"):
        requester.upload_tasks(requester.create(make_draft()), numbered_tasks(2))
    requester.discard(study)


def test_a_pool_is_not_answered_like_a_survey(requester: Any, new_worker: Any) -> None:
    study = open_pool(requester, pool_draft(), numbered_tasks(2))
    worker = new_worker("none")
    with pytest.raises(InputError, match="pool of tasks"):
        worker.answer(study, {"label": "1"})
    with refused("wrong-state"):
        request = {"level": "none", "study_sha256": worker.study(study).sha256}
        worker._account.call("PUT", f"/studies/{study}/reservation", request)
    assert study in {card["id"] for card in worker.pools()}
    assert study not in {card["id"] for card in worker.studies()}


def test_gold_is_committed_to_and_scores_the_labels(requester: Any, new_worker: Any) -> None:
    tasks = [task | {"gold": "1"} for task in numbered_tasks(4)]
    study = open_pool(requester, pool_draft(rules={"redundancy": 3}), tasks)
    definition = requester._broker.call("GET", f"/studies/{study}")["definition"]
    assert definition["gold_commitment"]
    assert "gold" not in json.dumps(definition["pool"])
    for _ in range(3):
        new_worker("none").label(study, even)
    requester.close(study)
    page = requester.labels(study)
    assert (page["n_gold"], page["n_gold_right"]) == (4, 2)
    assert Counter(item["label"] for item in page["items"]) == {"0": 2, "1": 2}
    with refused("wrong-state"):
        requester._broker.call("GET", f"/studies/{study}/labels")
    requester.publish(study)
    first, second = (requester._broker.call("GET", f"/studies/{study}/labels?limit=2&after={n}") for n in (0, 2))
    assert (first["next"], second["next"]) == (2, None)
    revealed = {"salt": first["gold_salt"], "truths": first["gold"] | second["gold"]}
    assert sha256_hex(revealed) == definition["gold_commitment"]
    with refused("wrong-state"):
        requester.results(study)


def forge_text(batch: dict[str, Any]) -> None:
    batch["tasks"][0]["text"] = "Another premise."


def forge_number(batch: dict[str, Any]) -> None:
    batch["tasks"][0]["number"], batch["tasks"][1]["number"] = (batch["tasks"][n]["number"] for n in (1, 0))


def forge_proof(batch: dict[str, Any]) -> None:
    batch["tasks"][0]["proof"][0] = "0" * 64


def repeat_task(batch: dict[str, Any]) -> None:
    batch["tasks"][1] = batch["tasks"][0]


def add_tasks(batch: dict[str, Any]) -> None:
    batch["tasks"] += [{**task, "number": task["number"] + 4} for task in batch["tasks"]]


FORGERIES = {
    forge_text: "not in the list",
    forge_number: "not in the list",
    forge_proof: "not in the list",
    repeat_task: "one of them twice",
    add_tasks: "more tasks than",
}


class HostileBroker(Broker):
    """A genuine broker, but for what it leases."""

    def __init__(self, address: str, forge: Any) -> None:
        super().__init__(address)
        self._forge = forge

    def call(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        reply = super().call(method, path, body, **headers)
        if method == "POST" and path.endswith("/batches"):
            self._forge(reply)
        return reply


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_forged_batch_is_refused_before_anything_is_charged(
    forge: Any, requester: Any, sqlite_server: Any, tmp_path: Path
) -> None:
    study = open_pool(requester, pool_draft(), numbered_tasks(8))
    with Worker(HostileBroker(sqlite_server.address, forge), tmp_path / "device", epsilon_cap=100.0) as worker:
        worker.sign_up(default_level="low")
        with pytest.raises(StudyError, match=FORGERIES[forge]):
            worker.label(study, even)
        assert worker._storage.receipts("me") == ()


def test_a_task_that_comes_again_in_another_batch_is_refused(
    requester: Any, sqlite_server: Any, tmp_path: Path
) -> None:
    study = open_pool(requester, pool_draft(), numbered_tasks(8))
    leased: list[list[dict[str, Any]]] = []

    def ask_again(batch: dict[str, Any]) -> None:
        leased.append(batch["tasks"])
        batch["tasks"] = leased[0]

    with Worker(HostileBroker(sqlite_server.address, ask_again), tmp_path / "device") as worker:
        worker.sign_up(default_level="none")
        worker.label(study, even)
        with pytest.raises(StudyError, match="no task is labelled twice"):
            worker.label(study, even)


def test_the_broker_refuses_reports_that_do_not_fit_the_batch(requester: Any, new_worker: Any) -> None:
    study = open_pool(requester, protected_draft(), numbered_tasks(8))
    worker = new_worker()
    checked = worker.study(study)
    request = {"level": "low", "study_sha256": checked.sha256}
    batch = worker._account.call("POST", f"/studies/{study}/batches", request)
    reports = [{"task": task["number"], "report": 0} for task in batch["tasks"]]
    foreign = next(number for number in range(8) if number not in {report["task"] for report in reports})
    body = {
        **request,
        "consent_version": 1,
        "withdrawal_sha256": "1" * 64,
        "channel": checked.levels["low"].channels["label"].sha256,
    }

    def send(**changes: Any) -> dict[str, Any]:
        path = f"/studies/{study}/batches/{batch['batch']}/submission"
        reply: dict[str, Any] = worker._account.call(
            "POST", path, {**body, "reports": reports, **changes}, Idempotency_Key="a-key-of-sixteen-letters"
        )
        return reply

    for code, changes in (
        ("missing-report", {"reports": reports[1:]}),
        ("invalid", {"reports": [*reports[1:], {"task": foreign, "report": 0}]}),
        ("invalid", {"reports": [*reports, reports[0]]}),
        ("report-out-of-range", {"reports": [*reports[1:], {**reports[0], "report": 3}]}),
        ("wrong-channel", {"channel": "0" * 64}),
        ("wrong-study-hash", {"study_sha256": "0" * 64}),
        ("wrong-consent", {"consent_version": 2}),
        ("invalid", {"accounting": "one-by-one"}),
    ):
        with refused(code):
            send(**changes)
    assert requester.progress(study)["taken"] == 0
    assert worker._account.call("GET", "/workers/me")["budget"]["epsilon_spent_nano"] == 0
    assert send()["n_reports"] == 4


def test_reports_that_got_no_reply_are_sent_again_unchanged(requester: Any, sqlite_server: Any, tmp_path: Path) -> None:
    study = open_pool(requester, protected_draft(), numbered_tasks(4))

    class LosesOneReply(Broker):
        lost: object = None

        def call(self, method: str, path: str, body: object = None, **headers: str) -> Any:
            reply = super().call(method, path, body, **headers)
            if path.endswith("/submission") and self.lost is None:
                self.lost = body
                raise ProblemError(0, {"detail": "no reply"})
            return reply

    broker = LosesOneReply(sqlite_server.address)
    with Worker(broker, tmp_path / "device", epsilon_cap=100.0) as worker:
        worker.sign_up(default_level="low")
        with pytest.raises(ProblemError, match="no reply"):
            worker.label(study, even)
    with Worker(Broker(sqlite_server.address), tmp_path / "device") as worker:
        (sent,) = worker.label(study, lambda task: None)
        assert list(sent.reports) == broker.lost["reports"]  # type: ignore[index]
        assert len(worker.receipts()) == 1
        assert worker.label(study, even) == []
    assert requester.progress(study)["taken"] == 1
