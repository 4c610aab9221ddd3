"""kill -9 in the middle of everything, five times: nothing torn, nothing lost, every retry gets its receipt."""

from __future__ import annotations

import hashlib
import secrets
import signal
import threading
import time
from typing import Any

import httpx
import pytest
from broker import plain
from waiting import until

pytestmark = pytest.mark.slow
N_CLIENTS = 6
N_KILLS = 5


class Client(threading.Thread):
    """Submits once per new worker and repeats the same bytes until there is a receipt."""

    def __init__(self, server: Any, study: str, signed: dict[str, Any], ended: threading.Event) -> None:
        super().__init__(daemon=True)
        self._server, self._study, self._signed, self._ended = server, study, signed, ended
        self.receipts: list[dict[str, Any]] = []
        self.retries = 0
        self.failures: list[str] = []

    def run(self) -> None:
        with plain.Client(base_url=f"{self._server.address}/api/v1", timeout=10) as http:
            while not self._ended.is_set():
                token = self._insist(http, "POST", "/workers", {}, {})["token"]
                headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": secrets.token_hex(16)}
                body = self._body()
                if secrets.randbelow(2):
                    wish = {"level": "medium", "study_sha256": self._signed["sha256"]}
                    self._insist(http, "PUT", f"/studies/{self._study}/reservation", wish, headers)
                receipt = self._insist(http, "POST", f"/studies/{self._study}/submissions", body, headers)
                self.receipts.append({"reply": receipt, "body": body, "headers": headers})

    def _insist(self, http: httpx.Client, method: str, path: str, body: Any, headers: Any) -> Any:
        deadline = time.monotonic() + 120
        while True:
            try:
                reply = http.request(method, path, json=body, headers=headers)
            except httpx.TransportError:
                if time.monotonic() > deadline:
                    self.failures.append(f"the server did not come back within two minutes: {method} {path}")
                    raise
                self.retries += 1
                # Six who knock twenty times a second would take from the server the time that it needs to come back.
                time.sleep(0.25)
                continue
            if reply.status_code not in (200, 201):
                self.failures.append(reply.text)
                raise AssertionError(reply.text)
            return reply.json()

    def _body(self) -> dict[str, Any]:
        level = self._signed["definition"]["levels"][1]
        return {
            "study_sha256": self._signed["sha256"],
            "level": level["name"],
            "consent_version": 1,
            "withdrawal_sha256": hashlib.sha256(secrets.token_bytes(32)).hexdigest(),
            "reports": [{"question": q, "channel": c, "report": 1} for q, c in level["channels"].items()],
        }


def _let_work(clients: list[Client]) -> None:
    """Until there are two more receipts for each of them, by when they are all in the middle of something else."""

    def received() -> int:
        return sum(len(client.receipts) for client in clients)

    before = received()
    until(
        lambda: received() >= before + 2 * len(clients), 120, explain=lambda: str([each.failures for each in clients])
    )


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_five_kills_under_load(database: str, request: Any, make_server: Any, make_draft: Any) -> None:
    url = request.getfixturevalue("postgres").new_database() if database == "postgresql" else ""
    server = make_server(url)
    requester = server.requester("crash lab")
    study = requester.create(make_draft(quota=10**6, budget_cents=10**9))
    requester.open(study)
    signed = server.broker().call("GET", f"/studies/{study}")

    ended = threading.Event()
    clients = [Client(server, study, signed, ended) for _ in range(N_CLIENTS)]
    for client in clients:
        client.start()
    for _ in range(N_KILLS):
        _let_work(clients)
        server.stop(signal.SIGKILL)
        server.start()
    _let_work(clients)
    ended.set()
    for client in clients:
        client.join(150)
        assert not client.is_alive()
        assert client.failures == []

    sent = [each for client in clients for each in client.receipts]
    assert sum(client.retries for client in clients) > 0
    assert len(sent) >= 10
    # Every acknowledged submission is there exactly once, and asking again gets the very same receipt.
    assert requester.progress(study)["taken"] == len(sent)
    assert len({each["reply"]["receipt"] for each in sent}) == len(sent)
    with plain.Client(base_url=f"{server.address}/api/v1") as http:
        for each in sent[:: max(1, len(sent) // 25)]:
            again = http.post(f"/studies/{study}/submissions", json=each["body"], headers=each["headers"])
            assert (again.status_code, again.json()) == (200, each["reply"])
    check = server.broker(server.operator()).call("GET", "/operator/ledger-check")
    assert check == {"holds": True, "problems": []}
    results = requester.close(study)
    assert results["state"] == "closed"
