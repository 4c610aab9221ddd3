"""Never overspend: concurrent requests on both databases, since SQLite alone would hide a lost update."""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
from broker import plain

N = 40


def submission(definition: dict[str, Any], sha256: str, level: str = "medium") -> dict[str, Any]:
    """A body with the first report of every channel."""
    chosen = next(each for each in definition["levels"] if each["name"] == level)
    return {
        "study_sha256": sha256,
        "level": level,
        "consent_version": 1,
        "withdrawal_sha256": hashlib.sha256(secrets.token_bytes(32)).hexdigest(),
        "reports": [
            {"question": question, "channel": channel, "report": 0} for question, channel in chosen["channels"].items()
        ],
    }


def all_at_once(calls: list[Any]) -> list[httpx.Response]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(lambda call: call(), calls))


def ledger_holds(server: Any) -> None:
    assert server.broker(server.operator()).call("GET", "/operator/ledger-check") == {"holds": True, "problems": []}


def test_forty_accepts_of_a_budget_for_ten_grant_exactly_ten(server: Any, make_draft: Any) -> None:
    requester = server.requester("ten of forty")
    studies = [requester.create(make_draft(title=f"study {number}")) for number in range(N)]
    hashes = {study: requester.open(study)["sha256"] for study in studies}
    # Two questions at ε = 1; a cap this small leaves nothing to the ρ side of the rule.
    cost = server.broker().call("GET", f"/studies/{studies[0]}")["definition"]["levels"][1]["charge"]
    token = server.worker_token(epsilon_cap_nano=10 * cost["epsilon_nano"])
    budget = server.broker(token).call("GET", "/workers/me")["budget"]
    granted_by_rho = budget["rho_cap_nano"] // cost["rho_nano"]
    assert granted_by_rho <= 10

    with plain.Client(base_url=f"{server.address}/api/v1", headers={"Authorization": f"Bearer {token}"}) as http:
        bodies = {study: {"level": "medium", "study_sha256": hashes[study]} for study in studies}
        replies = all_at_once(
            [lambda s=study: http.put(f"/studies/{s}/reservation", json=bodies[s], timeout=60) for study in studies]
        )
    assert Counter(reply.status_code for reply in replies) == {201: 10, 409: 30}
    refused = next(reply.json() for reply in replies if reply.status_code == 409)
    assert refused["type"] == "/problems/over-budget"
    assert refused["fields"]["needed_epsilon_nano"] == cost["epsilon_nano"]
    assert server.broker(token).call("GET", "/workers/me")["budget"]["epsilon_held_nano"] == 10 * cost["epsilon_nano"]
    ledger_holds(server)


def test_forty_identical_submissions_store_one_and_give_thirty_nine_receipts(server: Any, make_draft: Any) -> None:
    requester = server.requester("one of forty")
    study = requester.create(make_draft())
    requester.open(study)
    signed = server.broker().call("GET", f"/studies/{study}")
    body = submission(signed["definition"], signed["sha256"])
    headers = {"Authorization": f"Bearer {server.worker_token()}", "Idempotency-Key": secrets.token_hex(16)}
    with plain.Client(base_url=f"{server.address}/api/v1", headers=headers) as http:
        send = lambda: http.post(f"/studies/{study}/submissions", json=body, timeout=60)  # noqa: E731
        replies = all_at_once([send] * N)
        different = http.post(f"/studies/{study}/submissions", json=body | {"withdrawal_sha256": "0" * 64})
    assert Counter(reply.status_code for reply in replies) == {201: 1, 200: 39}
    assert len({reply.text for reply in replies}) == 1
    assert different.json()["type"] == "/problems/idempotency-conflict"
    assert requester.progress(study)["taken"] == 1
    ledger_holds(server)


def test_money_for_five_hundred_pays_exactly_five_hundred(server: Any, make_draft: Any) -> None:
    requester = server.requester("money for some")
    n_paid, n_asking = 500, 520
    study = requester.create(make_draft(quota=10_000, budget_cents=n_paid * 22))
    requester.open(study)
    signed = server.broker().call("GET", f"/studies/{study}")
    with ThreadPoolExecutor(16) as pool:
        tokens = list(pool.map(lambda _: server.worker_token(), range(n_asking)))

    with plain.Client(base_url=f"{server.address}/api/v1", limits=httpx.Limits(max_connections=24)) as http:

        def take_part(token: str) -> str:
            headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": secrets.token_hex(16)}
            body = submission(signed["definition"], signed["sha256"])
            reply = http.post(f"/studies/{study}/submissions", json=body, headers=headers, timeout=60)
            return "paid" if reply.status_code == 201 else reply.json()["type"]

        with ThreadPoolExecutor(24) as pool:
            outcomes = Counter(pool.map(take_part, tokens))
    assert outcomes == {"paid": n_paid, "/problems/no-money": n_asking - n_paid}
    money = requester.progress(study)["money"]
    assert (money["paid_cents"], money["commission_cents"], money["held_cents"]) == (n_paid * 20, n_paid * 2, 0)
    ledger_holds(server)


def test_the_last_place_is_given_once(server: Any, make_draft: Any) -> None:
    requester = server.requester("last place")
    study = requester.create(make_draft(quota=3, minimum_n=2))
    sha256 = requester.open(study)["sha256"]
    tokens = [server.worker_token() for _ in range(12)]

    def accept(token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        body = {"level": "medium", "study_sha256": sha256}
        url = f"{server.address}/api/v1/studies/{study}/reservation"
        return plain.put(url, json=body, headers=headers, timeout=60).status_code

    with ThreadPoolExecutor(12) as pool:
        assert Counter(pool.map(accept, tokens)) == {201: 3, 409: 9}
    ledger_holds(server)


def test_chains_of_the_log_and_the_audit_do_not_break_under_concurrency(server: Any, make_draft: Any) -> None:
    token = server.requester_token("many at once")
    with plain.Client(base_url=f"{server.address}/api/v1", headers={"Authorization": f"Bearer {token}"}) as http:
        made = all_at_once([lambda: http.post("/requester/studies", json=make_draft(), timeout=60)] * 12)
        assert {reply.status_code for reply in made} == {201}
        studies = [reply.json()["id"] for reply in made]
        opened = all_at_once(
            [lambda s=study: http.post(f"/requester/studies/{s}/open", timeout=60) for study in studies]
        )
        assert {reply.status_code for reply in opened} == {200}
        twice = all_at_once([lambda: http.post(f"/requester/studies/{studies[0]}/close", timeout=60)] * 4)
        assert Counter(reply.status_code for reply in twice) == {200: 1, 409: 3}
    operator = server.broker(server.operator())
    assert operator.call("GET", "/operator/audit?limit=1")["broken_at"] is None
    log = operator.call("GET", "/log?limit=1000")["items"]
    assert [line["index"] for line in log] == list(range(1, len(log) + 1))
    assert [line["previous"] for line in log[1:]] == [line["entry"] for line in log[:-1]]


def test_accepting_and_submitting_at_once_leaves_no_hold(server: Any, make_draft: Any) -> None:
    """Either the submission settles the hold, or the study cannot be accepted any more (tools/attack_holds.py)."""
    requester = server.requester("no hold left")
    study = requester.create(make_draft())
    requester.open(study)
    signed = server.broker().call("GET", f"/studies/{study}")
    wish = {"level": "medium", "study_sha256": signed["sha256"]}
    tokens = [server.worker_token() for _ in range(2 * N)]
    with plain.Client(base_url=f"{server.address}/api/v1", limits=httpx.Limits(max_connections=N)) as http:

        def call(token: str, method: str, path: str, body: Any) -> httpx.Response:
            headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": secrets.token_hex(16)}
            return http.request(method, f"/studies/{study}/{path}", json=body, headers=headers, timeout=60)

        calls = []
        for token in tokens:
            body = submission(signed["definition"], signed["sha256"])
            calls.append(lambda t=token, b=body: call(t, "POST", "submissions", b))
            calls.append(lambda t=token: call(t, "PUT", "reservation", wish))
        with ThreadPoolExecutor(N) as pool:
            replies = [reply.status_code for reply in pool.map(lambda each: each(), calls)]
    assert set(replies[::2]) == {201}
    assert set(replies[1::2]) <= {201, 409}
    assert [server.broker(token).call("GET", "/workers/me")["budget"]["epsilon_held_nano"] for token in tokens] == [
        0
    ] * len(tokens)
    assert requester.progress(study)["money"]["held_cents"] == 0
    ledger_holds(server)
