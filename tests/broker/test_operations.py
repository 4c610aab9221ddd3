"""Running a broker: health, metrics, logs without addresses, signed webhooks, exports, a start that is repeatable."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any, ClassVar

import pytest
from broker import plain
from broker.test_console import Console
from serving import Quiet, serving
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from waiting import until

from crowdveil.client import Broker, Worker
from crowdveil.files.reports import read_reports


class Listener(Quiet):
    heard: ClassVar[list[tuple[dict[str, str], bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Listener.heard.append((dict(self.headers), body))
        self.send_response(204)
        self.end_headers()


def test_webhooks_are_signed_and_carry_no_report(sqlite_server: Any, make_draft: Any) -> None:
    broker = sqlite_server.broker(sqlite_server.requester_token("hooked"))
    with serving(Listener) as address:
        hook = {"url": f"{address}/told", "events": ["study.opened", "study.closed"]}
        made = broker.call("POST", "/requester/webhooks", hook)
        study = broker.call("POST", "/requester/studies", make_draft())["id"]
        for step in ("open", "close"):
            broker.call("POST", f"/requester/studies/{study}/{step}")
        until(lambda: len(Listener.heard) >= 2)
    assert sorted(json.loads(body)["event"] for _, body in Listener.heard) == ["study.closed", "study.opened"]
    for headers, body in Listener.heard:
        assert set(json.loads(body)) == {"id", "event", "study", "day"}
        assert headers["webhook-id"] == json.loads(body)["id"]
        assert Webhook(made["secret"]).verify(body, headers) == json.loads(body)
        with pytest.raises(WebhookVerificationError):
            Webhook(made["secret"]).verify(body.replace(b"study.", b"Study."), headers)
    assert "secret" not in json.dumps(broker.call("GET", "/requester/webhooks"))


def test_logs_and_metrics_name_routes_and_nobody(sqlite_server: Any, make_draft: Any, tmp_path: Path) -> None:
    requester = sqlite_server.requester("watched")
    study = requester.create(make_draft())
    requester.open(study)
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        account = worker.sign_up()
        worker.answer(study, {"ill": "no", "days": 2})
        token = worker._broker.token
    requests = [json.loads(line) for line in sqlite_server.log_path.read_text().splitlines() if line.startswith("{")]
    submitted = [line for line in requests if line.get("route", "").endswith("/submissions")]
    assert submitted
    assert set(submitted[-1]) == {"at", "level", "message", "method", "route", "status", "milliseconds"}
    text = json.dumps(requests)
    metrics = plain.get(f"{sqlite_server.address}/metrics").text
    for secret in (study, account, token, "127.0.0.1"):
        assert secret not in text
        assert secret not in metrics
    assert re.search(
        r'crowdveil_requests_total\{method="POST",route="api/v1/studies/.+/submissions",status="201"\} \d+', metrics
    )
    assert plain.get(f"{sqlite_server.address}/healthz").json() == {"alive": True}


@pytest.mark.parametrize(
    "request_",
    [
        "POST /{study} HTTP/1.1\r\nHost: localhost\r\nAuthorization Bearer {token}\r\n\r\n",
        "POST /{study} {token} HTTP/1.1\r\n\r\n",
        # Announced too short: the end of the body is read as the next request.
        'POST /api/v1/workers HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{{}}"{token}"{study}}}\r\n\r\n',
    ],
    ids=["a broken header", "a broken first line", "a body longer than announced"],
)
def test_a_request_that_cannot_be_read_is_not_quoted_in_the_log(sqlite_server: Any, request_: str) -> None:
    secrets = {"study": "5ecre7" * 5, "token": "cv_worker_of-somebody"}
    before = sqlite_server.log_path.stat().st_size
    with socket.create_connection(("127.0.0.1", sqlite_server.port), timeout=10) as line:
        line.sendall(request_.format(**secrets).encode())
        reply = b"".join(iter(lambda: line.recv(4096), b""))
    assert b"400 Bad Request" in reply
    logged = sqlite_server.log_path.read_text()[before:]
    for secret in (*secrets.values(), "127.0.0.1"):
        assert secret not in logged


def test_describing_the_api_is_no_work_that_anybody_can_ask_for_again_and_again(sqlite_server: Any) -> None:
    before = sqlite_server.log_path.stat().st_size
    for _ in range(5):
        plain.get(f"{sqlite_server.address}/api/v1/openapi.json")
    logged = [json.loads(line) for line in sqlite_server.log_path.read_text()[before:].splitlines()]
    # Making the description takes more than a hundred.
    assert min(line["milliseconds"] for line in logged if line.get("route", "").endswith("openapi.json")) < 40


def test_no_header_of_a_client_changes_which_address_was_asked_for(sqlite_server: Any) -> None:
    """A proxy that keeps /metrics inside sees another path."""
    reply = plain.get(f"{sqlite_server.address}/x/metrics", headers={"SCRIPT_NAME": "/x"})
    assert reply.status_code == 404


def test_exports_agree_in_every_format(server: Any, make_draft: Any, tmp_path: Path) -> None:
    requester = server.requester("exporter")
    study = requester.create(make_draft(minimum_n=3, protects_participation=True))
    requester.open(study)
    for number in range(4):
        with Worker(Broker(server.address), tmp_path / str(number)) as worker:
            worker.sign_up()
            worker.answer(study, {"ill": "yes"} if number else {})
    running = plain.get(
        f"{server.address}/api/v1/requester/studies/{study}/exports/0",
        headers={"Authorization": f"Bearer {requester._broker.token}"},
    )
    assert running.json()["type"] == "/problems/wrong-state"
    requester.close(study)
    for part in (0, 1):
        paths = {
            kind: requester.export(study, tmp_path / f"p{part}.{kind}", part=part)
            for kind in ("csv", "parquet", "json")
        }
        csv, parquet = read_reports(paths["csv"]), read_reports(paths["parquet"])
        assert len(csv) == len(parquet) == len(json.loads(paths["json"].read_text())) == 4
        assert csv.report.tolist() == parquet.report.tolist()
        assert csv.channels == parquet.channels
        assert all(channel.protects_participation for channel in csv.channels)


def test_a_second_start_keeps_everything_and_prints_no_password(make_server: Any, make_draft: Any) -> None:
    server = make_server()
    requester = server.requester("keeper")
    study = requester.create(make_draft())
    key = server.broker().call("GET", "/")["public_key"]
    server.stop()
    size = server.log_path.stat().st_size
    server.start()
    assert "one-time password" not in server.log_path.read_text()[size:]
    assert requester.study(study)["state"] == "draft"
    assert server.broker().call("GET", "/")["public_key"] == key


def test_the_workers_app_is_served_the_same_to_everybody(sqlite_server: Any) -> None:
    bare = plain.get(f"{sqlite_server.address}/app/api.js")
    with_cookie = plain.get(
        f"{sqlite_server.address}/app/api.js", headers={"Cookie": "a=b", "Authorization": "Bearer x"}
    )
    assert bare.status_code == 200
    assert bare.content == with_cookie.content
    assert "set-cookie" not in bare.headers
    assert "default-src 'none'" in bare.headers["content-security-policy"]
    again = plain.get(f"{sqlite_server.address}/app/api.js", headers={"If-None-Match": bare.headers["etag"]})
    assert again.status_code == 304
    for outside in (
        "../broker/settings.py",
        "%2e%2e/broker/settings.py",
        "package.json",
        ".hidden.js",
        "a" * 300 + ".js",
        "",
    ):
        reply = plain.get(f"{sqlite_server.address}/app/{outside}")
        assert reply.status_code == (200 if not outside else 404) or reply.status_code == 404


def test_no_address_and_no_name_makes_the_console_fail(server: Any) -> None:
    """PostgreSQL refuses the character 0 with an error of its own."""
    nobody, signed_in = Console(server.address), Console(server.address, server.requester_token("someone who tries"))
    with nobody.http, signed_in.http:
        typed = {"name": "a\0", "password": "b", "code": "1"}
        assert nobody.post("/console/sign-in", typed).status_code == 400
        for path in ("/console/studies/%00", "/console/studies/%00/results", "/console/nowhere%00"):
            reply = signed_in.get(path)
            assert reply.status_code == 404
            assert "there is nothing at this address" in reply.text
