"""The short way of a submission: the same replies, log lines and counts as through the framework, and no gap in it."""

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


class Doors:
    """One open study, and both ways to hand in to it."""

    def __init__(self, draft: dict[str, Any]) -> None:
        from django.core.wsgi import get_wsgi_application

        from crowdveil.broker.api.short_way import ShortWay

        self.framework = get_wsgi_application()
        self.falls: list[str] = []
        self.short = ShortWay(self._fallen)
        self.scene = Scene(draft)

    def _fallen(self, environ: dict[str, Any], start_response: Any) -> Any:
        self.falls.append(environ["PATH_INFO"])
        return self.framework(environ, start_response)

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
def doors(django_here: Path, make_draft: Any) -> Doors:
    return Doors(make_draft())


def test_a_submission_in_good_order_gets_the_reply_that_the_framework_gives(doors: Doors) -> None:
    token, body = doors.token(), doors.body()
    stored = asked(doors.short, doors.environ(token, body))
    assert stored[0] == "201 Created"
    assert doors.falls == []
    again, elsewhere = (asked(way, doors.environ(token, body)) for way in (doors.short, doors.framework))
    assert again[0] == elsewhere[0] == "200 OK"
    assert again[1] == elsewhere[1] == stored[1]
    assert json.loads(again[2]) == json.loads(elsewhere[2]) == json.loads(stored[2])
    assert doors.falls == []
    books_balance()


def test_both_ways_are_logged_and_counted_alike(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    from crowdveil.broker.ops import metrics

    seen: list[tuple[str, str, int]] = []
    monkeypatch.setattr(metrics, "observe", lambda method, route, status, _: seen.append((method, route, status)))
    token, body = doors.token(), doors.body()
    asked(doors.framework, doors.environ(token, body))
    asked(doors.short, doors.environ(token, body))
    assert seen[0][2] == 201
    assert seen[1] == (*seen[0][:2], 200)


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
def test_whatever_is_out_of_order_gets_the_frameworks_refusal_and_nothing_is_stored(
    doors: Doors, changes: dict[str, str], body: dict[str, Any]
) -> None:
    from crowdveil.broker.submissions.models import Submission

    token, sent, before = doors.token(), doors.body(**body), Submission.objects.count()
    doors.falls.clear()
    short, framework = (asked(way, doors.environ(token, sent, **changes)) for way in (doors.short, doors.framework))
    assert short == framework
    assert short[0][0] == "4"
    assert len(doors.falls) == 1
    assert Submission.objects.count() == before


def test_a_requesters_token_does_not_submit(doors: Doors) -> None:
    from crowdveil.broker import clock
    from crowdveil.broker.identity.tokens import issue

    token = issue(doors.scene.owner, scope="requester", expires=clock.after(days=1))[0]
    assert asked(doors.short, doors.environ(token, doors.body()))[0] == "403 Forbidden"


def test_the_rate_of_a_token_holds_on_the_short_way(doors: Doors, settings_of: Any) -> None:
    settings_of(RATE_LIMIT=3)
    token, body = doors.token(), doors.body()
    statuses = [asked(doors.short, doors.environ(token, body))[0][:3] for _ in range(5)]
    assert statuses == ["201", "200", "200", "429", "429"]
    assert asked(doors.framework, doors.environ(token, body))[0][:3] == "429"


def test_a_refused_submission_counts_once_against_the_rate(doors: Doors, settings_of: Any) -> None:
    settings_of(RATE_LIMIT=3)
    token, body = doors.token(), doors.body(consent_version=2)
    statuses = [asked(doors.short, doors.environ(token, body))[0][:3] for _ in range(4)]
    assert statuses == ["409", "409", "409", "429"]


def test_a_client_cannot_say_that_it_was_counted(doors: Doors, settings_of: Any) -> None:
    settings_of(RATE_LIMIT=1)
    first, other = doors.token(), doors.token()
    environ = doors.environ(first, doors.body(), HTTP_AUTHORIZATION=f"bearer {first}", HTTP_CROWDVEIL_COUNTED=other)
    statuses = [asked(doors.short, environ | {"wsgi.input": BytesIO(doors.body())})[0][:3] for _ in range(2)]
    assert statuses == ["201", "429"]


def test_what_is_no_host_name_is_refused_even_where_every_name_is_served(doors: Doors, settings_of: Any) -> None:
    settings_of(ALLOWED_HOSTS=["*"])
    for host, status in {"any.example": "201", "no host": "400", "two, hosts": "400"}.items():
        token, body = doors.token(), doors.body()
        assert asked(doors.short, doors.environ(token, body, HTTP_HOST=host))[0][:3] == status
        assert asked(doors.framework, doors.environ(token, body, HTTP_HOST=host))[0][:3] == status.replace("201", "200")


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
