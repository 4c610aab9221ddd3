"""Handing in over WSGI: what is in good order is stored once, whatever is out of order is refused and not stored."""

from __future__ import annotations

import json
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from broker import plain
from broker.ready import Ready
from broker.scene import Scene, books_balance

# ninja would like another spelling of a status; a server does not turn that into an error as pytest does.
pytestmark = pytest.mark.filterwarnings("ignore:Returning tuple:DeprecationWarning")


class Door:
    """One open study, and the application that takes submissions to it."""

    def __init__(self, draft: dict[str, Any]) -> None:
        from django.core.wsgi import get_wsgi_application

        self.application = get_wsgi_application()
        self.scene = Scene(draft)

    def token(self) -> str:
        from crowdveil.broker import clock
        from crowdveil.broker.identity.tokens import issue

        return issue(self.scene.worker(), scope="worker", expires=clock.after(days=1))[0]

    def body(self, **changes: Any) -> bytes:
        level = self.scene.opened.levels["medium"]
        reports = [
            {"question": question, "channel": channel, "report": 1}
            for question, channel in zip(self.scene.opened.questions, level.channels, strict=True)
        ]
        body = {"study_sha256": self.scene.opened.sha256, "level": "medium", "consent_version": 1}
        return json.dumps(body | {"withdrawal_sha256": secrets.token_hex(32), "reports": reports} | changes).encode()

    def environ(self, token: str, body: bytes, **changes: str) -> dict[str, Any]:
        return {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": f"/api/v1/studies/{self.scene.study.id}/submissions",
            "SCRIPT_NAME": "",
            "QUERY_STRING": "",
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "127.0.0.1:8000",
            "HTTP_AUTHORIZATION": f"Bearer {token}",
            "HTTP_IDEMPOTENCY_KEY": "the-key-of-this-test",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.url_scheme": "http",
            "wsgi.errors": sys.stderr,
            "wsgi.input": BytesIO(body),
            **changes,
        }


def asked(application: Any, environ: dict[str, Any]) -> tuple[str, dict[str, str], bytes]:
    """Status, headers and body."""
    seen: list[Any] = []
    reply = application(environ, lambda status, headers: seen.extend((status, dict(headers))))
    content = b"".join(reply)
    if hasattr(reply, "close"):
        reply.close()
    return seen[0], seen[1], content


@pytest.fixture(scope="module")
def door(django_here: Path, make_draft: Any) -> Door:
    return Door(make_draft())


def test_a_submission_sent_again_gets_the_same_receipt(door: Door) -> None:
    token, body = door.token(), door.body()
    stored, again = (asked(door.application, door.environ(token, body)) for _ in range(2))
    assert (stored[0], again[0]) == ("201 Created", "200 OK")
    assert stored[1:] == again[1:]
    books_balance()


def test_a_submission_is_counted_by_its_route_and_status(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    from crowdveil.broker.ops import metrics

    seen: list[tuple[str, str, int]] = []
    monkeypatch.setattr(metrics, "observe", lambda method, route, status, _: seen.append((method, route, status)))
    asked(door.application, door.environ(door.token(), door.body()))
    ((method, route, status),) = seen
    assert (method, status) == ("POST", 201)
    assert door.scene.study.id not in route


@pytest.mark.parametrize(
    ("changes", "body"),
    [
        ({"HTTP_AUTHORIZATION": "Bearer cv_worker_of-nobody"}, {}),
        ({"HTTP_AUTHORIZATION": "Basic YTpi"}, {}),
        ({"HTTP_AUTHORIZATION": ""}, {}),
        ({"HTTP_HOST": "elsewhere.example"}, {}),
        ({"HTTP_IDEMPOTENCY_KEY": "short"}, {}),
        ({"CONTENT_LENGTH": str(2**20 + 1)}, {}),
        ({"CONTENT_LENGTH": "7"}, {}),
        ({"REQUEST_METHOD": "GET"}, {}),
        ({"PATH_INFO": f"/api/v1/studies/{'0' * 32}/submissions"}, {}),
        ({}, {"study_sha256": "0" * 64}),
        ({}, {"consent_version": 2}),
        ({}, {"consent_version": "1"}),
        ({}, {"level": "none"}),
        ({}, {"reports": []}),
        ({}, {"answer": "yes"}),
        ({}, {"withdrawal_sha256": "not a hash"}),
    ],
)
def test_whatever_is_out_of_order_is_refused_and_nothing_is_stored(
    door: Door, changes: dict[str, str], body: dict[str, Any]
) -> None:
    from crowdveil.broker.submissions.models import Submission

    token, sent, before = door.token(), door.body(**body), Submission.objects.count()
    assert asked(door.application, door.environ(token, sent, **changes))[0][0] == "4"
    assert Submission.objects.count() == before


def test_a_requesters_token_does_not_submit(door: Door) -> None:
    from crowdveil.broker import clock
    from crowdveil.broker.identity.tokens import issue

    token = issue(door.scene.owner, scope="requester", expires=clock.after(days=1))[0]
    assert asked(door.application, door.environ(token, door.body()))[0] == "403 Forbidden"


def test_the_rate_of_a_token_holds(door: Door, settings_of: Any) -> None:
    settings_of(RATE_LIMIT=3)
    token, body = door.token(), door.body()
    statuses = [asked(door.application, door.environ(token, body))[0][:3] for _ in range(5)]
    assert statuses == ["201", "200", "200", "429", "429"]


def test_a_refused_submission_counts_once_against_the_rate(door: Door, settings_of: Any) -> None:
    settings_of(RATE_LIMIT=3)
    token, body = door.token(), door.body(consent_version=2)
    statuses = [asked(door.application, door.environ(token, body))[0][:3] for _ in range(4)]
    assert statuses == ["409", "409", "409", "429"]


def test_what_is_no_host_name_is_refused_even_where_every_name_is_served(door: Door, settings_of: Any) -> None:
    settings_of(ALLOWED_HOSTS=["*"])
    for host, status in {"any.example": "201", "no host": "400", "two, hosts": "400"}.items():
        token, body = door.token(), door.body()
        assert asked(door.application, door.environ(token, body, HTTP_HOST=host))[0][:3] == status


def test_connections_that_the_database_closed_refuse_nobody(postgres_server: Any, make_draft: Any) -> None:
    ready = Ready(postgres_server, make_draft)
    tokens = [postgres_server.worker_token() for _ in range(6)]
    # Several at once, so that several threads hold a connection.
    _read_selves(postgres_server, tokens)
    for read in (False, True):
        with psycopg.connect(postgres_server.database, autocommit=True) as database:
            database.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        if read:
            _read_selves(postgres_server, tokens)
        else:
            for ready.token in tokens:
                assert ready.post(ready.body()).status_code == 201


def _read_selves(server: Any, tokens: list[str]) -> None:
    url = f"{server.address}/api/v1/workers/me"
    with ThreadPoolExecutor(len(tokens)) as pool, plain.Client() as client:
        replies = pool.map(lambda token: client.get(url, headers={"Authorization": f"Bearer {token}"}), 4 * tokens)
        assert {reply.status_code for reply in replies} == {200}


@pytest.fixture
def settings_of(django_here: Path) -> Any:
    """Change settings for one test."""
    from django.test import override_settings

    changed: list[Any] = []

    def change(**values: Any) -> None:
        changed.append(override_settings(**values))
        changed[-1].enable()

    yield change
    for each in changed:
        each.disable()
