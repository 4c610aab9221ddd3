"""Everything that must be refused is refused with a clear problem, and nothing is stored."""

from __future__ import annotations

import copy
from typing import Any

import httpx
import pytest
from broker import plain
from broker.ready import Ready

INJECTIONS = [
    "'; DROP TABLE intake_submission; --",
    '" OR 1=1 --',
    "{{7*7}}{% debug %}",
    "${jndi:ldap://x/y}",
    "<script>alert(1)</script>",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "\u202e\ufeff",
]


@pytest.fixture(scope="module")
def ready(postgres_server: Any, make_draft: Any) -> Ready:
    """On PostgreSQL, which is the stricter of the two about what may be stored."""
    return Ready(postgres_server, make_draft)


def spoiled(ready: Ready, change: Any) -> httpx.Response:
    body = copy.deepcopy(ready.body())
    change(body)
    return ready.post(body)


SPOILT = {
    "wrong study hash": (lambda b: b.update(study_sha256="0" * 64), 409, "wrong-study-hash"),
    "wrong consent version": (lambda b: b.update(consent_version=2), 409, "wrong-consent"),
    "level not offered": (lambda b: b.update(level="high"), 422, "invalid"),
    "level unknown": (lambda b: b.update(level="max"), 422, "invalid"),
    "another level's channel": (lambda b: b.update(level="low"), 422, "wrong-channel"),
    "channel hash changed": (lambda b: b["reports"][0].update(channel="0" * 64), 422, "wrong-channel"),
    "report out of range": (lambda b: b["reports"][0].update(report=6), 422, "report-out-of-range"),
    "report negative": (lambda b: b["reports"][0].update(report=-1), 422, "invalid"),
    "report too large": (lambda b: b["reports"][0].update(report=10**30), 422, "invalid"),
    "report a float": (lambda b: b["reports"][0].update(report=0.5), 422, "invalid"),
    "report a text": (lambda b: b["reports"][0].update(report="yes"), 422, "invalid"),
    "report missing": (lambda b: b["reports"].pop(), 422, "missing-report"),
    "no reports": (lambda b: b.update(reports=[]), 422, "missing-report"),
    "question twice": (lambda b: b["reports"].append(b["reports"][0]), 422, "invalid"),
    "question unknown": (lambda b: b["reports"][0].update(question="other"), 422, "invalid"),
    "unknown field": (lambda b: b.update(answer="yes"), 422, "invalid"),
    "answer beside report": (lambda b: b["reports"][0].update(answer="yes"), 422, "invalid"),
    "withdrawal hash not a hash": (lambda b: b.update(withdrawal_sha256="x"), 422, "invalid"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_submission_is_refused_whole(ready: Ready, name: str) -> None:
    change, status, code = SPOILT[name]
    reply = spoiled(ready, change)
    assert (reply.status_code, reply.json()["type"]) == (status, f"/problems/{code}")
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["detail"]
    ready.nothing_stored()


@pytest.mark.parametrize("sent", ["1", True, 1.0, None])
def test_a_number_must_be_sent_as_a_number(ready: Ready, sent: object) -> None:
    for place, change in {
        "reports.1.report": lambda b: b["reports"][1].update(report=sent),
        "consent_version": lambda b: b.update(consent_version=sent),
    }.items():
        reply = spoiled(ready, change)
        assert (reply.status_code, reply.json()["detail"]) == (422, f"{place}: Input should be a valid integer")
    ready.nothing_stored()


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000 + b"]" * 100_000, 400),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, 400),
        (b'{"study_sha256": NaN}', 400),
        (b"[]", 422),
        (b"null", 422),
        (b'"text"', 422),
        (b" " * ((1 << 20) + 1), 413),
        (b'{"level": "\\ud800"}', 400),
    ],
    ids=[
        "empty",
        "cut",
        "not-utf8",
        "deep-list",
        "deep-object",
        "nan",
        "list",
        "null",
        "text",
        "too-large",
        "surrogate",
    ],
)
def test_a_malformed_body_is_refused(ready: Ready, raw: bytes, status: int) -> None:
    reply = ready.post(None, raw=raw)
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    ready.nothing_stored()


@pytest.mark.parametrize("text", INJECTIONS)
def test_injections_do_nothing(ready: Ready, text: str) -> None:
    address = ready.server.address
    for path in (
        f"/api/v1/studies/{text}",
        f"/api/v1/studies?after={text}",
        f"/api/v1/log?after={text}",
        f"/app/{text}",
    ):
        assert plain.get(address + path).status_code in (400, 404, 422)
    headers = {"Authorization": f"Bearer {ready.token}".encode(), "Idempotency-Key": text.encode()}
    url = f"{address}/api/v1/studies/{ready.study}/submissions"
    assert plain.post(url, json=ready.body(), headers=headers).status_code in (400, 422)
    body = ready.body()
    body["reports"][0]["question"] = text
    assert ready.post(body).status_code == 422
    assert plain.get(f"{address}/healthz", headers={"Host": "evil.example"}).status_code in (200, 400)
    ready.nothing_stored()


def test_text_of_a_draft_is_kept_as_it_is(postgres_server: Any, make_draft: Any) -> None:
    requester = postgres_server.requester("literal")
    for text in INJECTIONS[:5]:
        study = requester.create(make_draft(title=text, purpose=text, consent_text=text))
        assert requester.study(study)["draft"]["title"] == text


DRAFTS = {
    "no questions": {"questions": []},
    "minimum above quota": {"quota": 10, "minimum_n": 11},
    "greedy but not linkable": {"selection": {"policy": "greedy"}},
    "max answers unprotected": {"max_answers": 1},
    "partial pay while protected": {"partial_pay": True, "protects_participation": True},
    "level none while protected": {
        "protects_participation": True,
        "levels": [{"name": "none", "mechanism": "none", "pay_cents": 1}],
    },
    "mechanism none called low": {"levels": [{"name": "low", "mechanism": "none", "pay_cents": 1}]},
    "epsilon zero": {"levels": [{"name": "low", "mechanism": "randomized-response", "epsilon": "0", "pay_cents": 1}]},
    "negative pay": {"levels": [{"name": "low", "mechanism": "randomized-response", "epsilon": "1", "pay_cents": -1}]},
    "pay as text": {"levels": [{"name": "low", "mechanism": "randomized-response", "epsilon": "1", "pay_cents": "1"}]},
    "quota as text": {"quota": "500"},
    "minimum true": {"minimum_n": True},
    "flag as number": {"linkable": 1},
    "free text": {"questions": [{"id": "q", "text": "Say", "domain": {"type": "text"}}]},
    "one option": {"questions": [{"id": "q", "text": "Say", "domain": {"type": "choices", "options": ["a"]}}]},
    "options twice": {"questions": [{"id": "q", "text": "Say", "domain": {"type": "choices", "options": ["a", "a"]}}]},
    "scale falls": {"questions": [{"id": "q", "text": "Say", "domain": {"type": "scale", "low": "5", "high": "1"}}]},
    "scale too fine": {
        "questions": [{"id": "q", "text": "x", "domain": {"type": "scale", "low": "0", "high": "9", "step": "0.0001"}}]
    },
    "step zero": {
        "questions": [{"id": "q", "text": "x", "domain": {"type": "scale", "low": "0", "high": "9", "step": "0"}}]
    },
    "skip logic that tells": {
        "questions": [
            {"id": "a", "text": "x", "domain": {"type": "choices", "options": ["n", "y"]}},
            {
                "id": "b",
                "text": "x",
                "domain": {"type": "choices", "options": ["n", "y"]},
                "show_if": {"question": "a", "any_of": ["y"]},
            },
        ]
    },
    "skip logic backwards": {
        "questions": [
            {
                "id": "a",
                "text": "x",
                "domain": {"type": "choices", "options": ["n", "y"]},
                "show_if": {"question": "b", "any_of": ["y"]},
            }
        ]
    },
}


@pytest.mark.parametrize("name", DRAFTS)
def test_a_draft_that_makes_no_sense_is_refused(ready: Ready, make_draft: Any, name: str) -> None:
    token = ready.requester._broker.token
    url = f"{ready.server.address}/api/v1/requester/studies"
    reply = plain.post(url, json=make_draft(**DRAFTS[name]), headers={"Authorization": f"Bearer {token}"})
    assert reply.status_code == 422, reply.text
    assert reply.json()["detail"]


@pytest.mark.parametrize(
    ("mechanism", "parameters"),
    [
        *((name, {}) for name in ("gaussian", "laplace", "two-layer", "matrix-factorization", "no-such-thing")),
        ("randomized-response", {"epsilon": 9}),
        ("randomized-response", {"protect_participation": True}),
        ("randomized-response", {"name": "none"}),
    ],
)
def test_research_mechanisms_and_second_opinions_are_never_deployed(
    ready: Ready, make_draft: Any, mechanism: str, parameters: dict[str, Any]
) -> None:
    levels = [{"name": "low", "mechanism": mechanism, "epsilon": "1", "pay_cents": 1, "parameters": parameters}]
    study = ready.requester.create(make_draft(levels=levels))
    url = f"{ready.server.address}/api/v1/requester/studies/{study}/open"
    reply = plain.post(url, headers={"Authorization": f"Bearer {ready.requester._broker.token}"})
    assert reply.status_code == 422, reply.text
    assert ready.requester.study(study)["state"] == "draft"
