"""Every endpoint × role: anonymous is 401, the wrong role 403, the right one gets further."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from broker import plain

KEY = "0" * 32
PUBLIC = {
    ("GET", "/"),
    ("GET", "/log"),
    ("GET", "/studies"),
    ("GET", "/studies/{study}"),
    ("GET", "/studies/{study}/results"),
    ("GET", "/studies/{study}/labels"),
    ("POST", "/studies/{study}/withdrawals"),
    ("POST", "/workers"),
    ("POST", "/sessions"),
}
ENROLLING = {("POST", "/account/enrolment"), ("POST", "/account/enrolment/confirmation")}


def allowed_scopes(method: str, path: str) -> set[str]:
    """Which token opens which door, said once more and independently of the code."""
    if (method, path) in PUBLIC:
        return {"anonymous", "worker", "requester", "operator", "enrol"}
    if (method, path) in ENROLLING:
        return {"enrol"}
    if path.startswith("/workers/me") or path.endswith(("/reservation", "/submissions")):
        return {"worker"}
    if path.startswith("/studies/{study}/batches"):
        return {"worker"}
    if path.startswith("/requester"):
        return {"requester"}
    if path.startswith("/operator"):
        return {"operator"}
    if path.startswith(("/account", "/sessions/current")):
        return {"requester", "operator"}
    raise AssertionError(f"nobody has said who may {method} {path}")


@pytest.fixture(scope="module")
def server(postgres_server: Any) -> Any:
    """Who may do what does not depend on the database."""
    return postgres_server


@pytest.fixture(scope="module")
def tokens(server: Any) -> dict[str, str]:
    operator = server.broker(server.operator())
    fresh = operator.call("POST", "/operator/accounts", {"name": "not enrolled", "role": "requester"})
    session = {"name": "not enrolled", "password": fresh["one_time_password"]}
    return {
        "anonymous": "",
        "worker": server.worker_token(),
        "requester": server.requester_token("role requester"),
        "operator": server.operator(),
        "enrol": server.broker().call("POST", "/sessions", session)["token"],
    }


def operations(server: Any) -> list[tuple[str, str]]:
    schema = plain.get(f"{server.address}/api/v1/openapi.json").json()
    assert schema["openapi"].startswith("3.1")
    return [
        (method.upper(), path.removeprefix("/api/v1"))
        for path, methods in schema["paths"].items()
        for method in methods
    ]


def test_every_endpoint_opens_to_its_role_only(server: Any, tokens: dict[str, str]) -> None:
    wrong = []
    found = operations(server)
    assert len(found) > 50
    with plain.Client(base_url=f"{server.address}/api/v1") as http:
        for method, path in found:
            # Erasing the very accounts that ask would end the table early.
            if (method, path) in {("DELETE", "/workers/me"), ("DELETE", "/sessions/current")}:
                continue
            url = path
            for name in ("study", "token", "webhook", "account", "batch", "upload"):
                url = url.replace(f"{{{name}}}", KEY)
            url = url.replace("{part}", "0")
            for role, token in tokens.items():
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                status = http.request(method, url, json={}, headers=headers).status_code
                may = role in allowed_scopes(method, path)
                expected = status not in (401, 403) if may else status == (401 if role == "anonymous" else 403)
                if path == "/sessions" and status == 422:
                    expected = True
                if not expected or status >= 500:
                    wrong.append((method, path, role, status))
    assert wrong == []


@pytest.mark.parametrize(
    "token",
    ["cv_worker_" + "A" * 43, "nonsense", "cv_operator_", "Bearer", "é" * 20, "A" * 5000],
    ids=["unknown", "nonsense", "empty", "word", "not-ascii", "long"],
)
def test_a_token_that_was_never_issued_opens_nothing(server: Any, token: str) -> None:
    headers = {"Authorization": b"Bearer " + token.encode()}
    reply = plain.get(f"{server.address}/api/v1/workers/me", headers=headers)
    assert reply.status_code in (400, 401, 431)


def test_ended_tokens_are_worth_nothing(server: Any) -> None:
    token = server.requester_token("signing out")
    broker = server.broker(token)
    broker.call("GET", "/account")
    broker.call("DELETE", "/sessions/current")
    assert (
        plain.get(f"{server.address}/api/v1/account", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    )
    worker = server.worker_token()
    server.broker(worker).call("DELETE", "/workers/me")
    headers = {"Authorization": f"Bearer {worker}"}
    assert plain.get(f"{server.address}/api/v1/workers/me", headers=headers).status_code == 401


def test_a_one_time_code_cannot_be_replayed_nor_a_one_time_password_reused(server: Any) -> None:
    operator = server.broker(server.operator())
    made = operator.call("POST", "/operator/accounts", {"name": "replayed", "role": "requester"})
    server.enrolled("replayed", made["one_time_password"])
    again = {"name": "replayed", "password": made["one_time_password"]}
    assert plain.post(f"{server.address}/api/v1/sessions", json=again).status_code == 401
    without_code = {"name": "replayed", "password": "a lasting password of replayed"}
    assert plain.post(f"{server.address}/api/v1/sessions", json=without_code).status_code == 401


def test_whoever_lost_the_authenticator_enrols_anew(server: Any) -> None:
    operator = server.broker(server.operator())
    made = operator.call("POST", "/operator/accounts", {"name": "lost phone", "role": "requester"})
    old = server.enrolled("lost phone", made["one_time_password"])
    again = operator.call("POST", f"/operator/accounts/{made['id']}/resets")
    assert plain.get(f"{server.address}/api/v1/account", headers={"Authorization": f"Bearer {old}"}).status_code == 401
    assert server.broker(server.enrolled("lost phone", again["one_time_password"])).call("GET", "/account")


def test_nobody_sees_another_requesters_study(server: Any, make_draft: Any) -> None:
    mine, theirs = server.requester("owner"), server.requester_token("stranger")
    study = mine.create(make_draft())
    headers = {"Authorization": f"Bearer {theirs}"}
    for method, path in [
        ("GET", ""),
        ("PUT", ""),
        ("DELETE", ""),
        ("POST", "/open"),
        ("POST", "/close"),
        ("GET", "/progress"),
        ("GET", "/results"),
        ("GET", "/exports"),
    ]:
        url = f"{server.address}/api/v1/requester/studies/{study}{path}"
        body = make_draft() if method == "PUT" else None
        assert plain.request(method, url, headers=headers, json=body).status_code == 404
    assert plain.get(f"{server.address}/api/v1/studies/{study}").status_code == 404
    assert mine.study(study)["state"] == "draft"


def test_every_call_is_on_the_page_of_the_api(server: Any) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "api.md").read_text()
    assert [call for call in operations(server) if f"`{call[0]} {call[1]}`" not in page] == []
