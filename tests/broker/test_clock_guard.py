"""A wrong clock destroys nothing: after a jump nothing expires until it is back, or until an operator confirms it."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from broker import plain
from broker.conftest import Server
from broker.scene import Scene, refused

Shift = Callable[..., None]


@pytest.fixture
def shift(django_here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shift]:
    """Set the clock ahead, or back, of the right time."""
    from crowdveil.broker import clock, clock_guard

    right = clock.now

    def move(**ahead: float) -> None:
        monkeypatch.setattr(clock, "now", lambda: right() + timedelta(**ahead))

    clock_guard.confirm()
    assert clock_guard.is_trusted()
    yield move
    monkeypatch.undo()
    clock_guard.confirm()


def restart() -> None:
    """What a new process knows: the file and nothing else."""
    from crowdveil.broker import clock_guard

    clock_guard._anchor = clock_guard._saved = None


def worker_token(scene: Scene, expires: datetime) -> tuple[str, Any]:
    from crowdveil.broker.identity.tokens import issue

    return issue(scene.worker(), scope="worker", expires=expires)


@pytest.mark.parametrize("days", [1, 20, 400, 4000])
def test_a_jump_of_the_clock_destroys_nothing(shift: Shift, make_draft: Any, days: int) -> None:
    from crowdveil.broker import clock
    from crowdveil.broker.identity.attempts import forget_sources
    from crowdveil.broker.identity.models import Token
    from crowdveil.broker.identity.tokens import bearer_of, forget_expired
    from crowdveil.broker.ledger.reservations import find, release_expired

    scene = Scene(make_draft())
    text, token = worker_token(scene, clock.after(days=365))
    session = worker_token(scene, clock.after(hours=12))[1]
    keeper = scene.worker()
    scene.reserve(keeper)
    shift(days=days)
    assert forget_expired() == forget_sources() == release_expired() == 0
    scene.reserve(scene.worker())
    restart()
    assert forget_expired() == 0
    assert Token.objects.filter(id__in=(token.id, session.id)).count() == 2
    assert find(scene.study.id, keeper.id) is not None
    shift()
    assert bearer_of(text) is not None


def test_the_clock_is_trusted_again_once_it_is_back(shift: Shift) -> None:
    from crowdveil.broker import clock_guard

    for ahead in (timedelta(hours=2), timedelta(days=400), -timedelta(days=1)):
        shift(seconds=ahead.total_seconds())
        assert not clock_guard.is_trusted()
        shift()
        assert clock_guard.is_trusted()


def test_many_small_jumps_are_a_large_one(shift: Shift) -> None:
    from crowdveil.broker import clock_guard

    trusted = []
    for minutes in range(0, 200, 40):
        shift(minutes=minutes)
        trusted.append(clock_guard.is_trusted())
    assert trusted == [True, True, False, False, False]


def test_a_restart_does_not_make_a_jump_right_and_an_operator_does(shift: Shift) -> None:
    from crowdveil.broker import clock_guard

    shift(days=20)
    assert not clock_guard.is_trusted()
    restart()
    assert not clock_guard.is_trusted()
    clock_guard.confirm()
    assert clock_guard.is_trusted()


@pytest.mark.parametrize(("days", "is_trusted"), [(0, True), (20, True), (31, False), (400, False), (-1, False)])
def test_a_broker_that_was_switched_off(shift: Shift, days: int, is_trusted: bool) -> None:
    from crowdveil.broker import clock_guard

    restart()
    shift(days=days)
    assert clock_guard.is_trusted() is is_trusted


def test_a_spoiled_file_is_not_trusted(shift: Shift, django_here: Path) -> None:
    from crowdveil.broker import clock_guard

    (django_here / "clock.json").write_text("{")
    restart()
    assert not clock_guard.is_trusted()


def test_tokens_that_cannot_be_renewed_are_forgotten(shift: Shift, make_draft: Any) -> None:
    from crowdveil.broker import clock
    from crowdveil.broker.identity.models import Token
    from crowdveil.broker.identity.tokens import forget_expired, issue

    scene = Scene(make_draft())
    renewable = worker_token(scene, clock.after(days=-364))[1]
    old = worker_token(scene, clock.after(days=-366))[1]
    _, session = issue(scene.owner, scope="requester", expires=clock.after(minutes=-1))
    assert forget_expired() >= 2
    assert set(Token.objects.filter(id__in=(renewable.id, old.id, session.id))) == {renewable}


@pytest.mark.filterwarnings("ignore:Returning tuple:DeprecationWarning")
def test_an_expired_token_of_a_worker_fetches_a_fresh_one_and_nothing_else(django_here: Path, make_draft: Any) -> None:
    from django.test import Client

    from crowdveil.broker import clock
    from crowdveil.broker.identity.tokens import issue

    scene, api = Scene(make_draft()), Client(SERVER_NAME="localhost")
    expired, _ = worker_token(scene, clock.after(days=-35))
    header = {"HTTP_AUTHORIZATION": f"Bearer {expired}"}
    assert api.get("/api/v1/workers/me", **header).status_code == 401
    renewed = api.post("/api/v1/workers/me/tokens", {"label": "renewed"}, "application/json", **header)
    assert renewed.status_code == 201
    fresh = {"HTTP_AUTHORIZATION": f"Bearer {renewed.json()['token']}"}
    assert api.get("/api/v1/workers/me", **fresh).status_code == 200
    session, _ = issue(scene.owner, scope="requester", expires=clock.after(days=-1))
    header = {"HTTP_AUTHORIZATION": f"Bearer {session}"}
    assert api.post("/api/v1/workers/me/tokens", {"label": ""}, "application/json", **header).status_code == 401


def test_a_sign_in_by_a_clock_that_was_ahead_blocks_nobody(shift: Shift) -> None:
    from crowdveil.broker import clock
    from crowdveil.broker.identity import sign_in as signing
    from crowdveil.broker.identity import totp
    from crowdveil.broker.identity.accounts import invite
    from crowdveil.broker.identity.models import Account

    def code(steps: int = 0) -> str:
        return totp.code_at(secret, totp.step_at(clock.now().timestamp()) + steps)

    def authenticate(code: str) -> None:
        signing.authenticate(str(account.name), "a lasting password", code, network="192.0.2.0/24")

    account, _ = invite(f"lab {secrets.token_hex(4)}", "requester", by="")
    secret = signing.enrol(account, "a lasting password")
    account.refresh_from_db()
    signing.confirm(account, code())
    shift(hours=2)
    authenticate(code())
    shift()
    authenticate(used := code())
    with refused("unauthorized"):
        authenticate(used)
    # Guesses at a time that was ahead lock the account for minutes, not until that time comes.
    shift(days=400)
    for _ in range(12):
        with refused("unauthorized"):
            authenticate("000000")
    shift()
    authenticate(code(1))
    assert Account.objects.get(id=account.id).locked_until is None


def test_the_sdk_renews_a_key_that_the_broker_takes_for_expired(sqlite_server: Any, tmp_path: Path) -> None:
    from crowdveil.client import Broker, Worker

    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        account = worker.sign_up()
        with closing(sqlite3.connect(sqlite_server.home / "crowdveil.sqlite3", timeout=30)) as database, database:
            past = (datetime.now(UTC) - timedelta(days=35)).strftime("%Y-%m-%d %H:%M:%S")
            expire = "UPDATE identity_token SET expires = ? WHERE account_id = ?"
            assert database.execute(expire, (past, account)).rowcount == 1
        assert worker.payments()["balance_cents"] == 0
        assert worker.sign_up() == account


def test_a_start_after_a_jump_warns_until_it_is_confirmed(make_server: Any, homes: Path) -> None:
    def trusted(server: Any) -> bool:
        return "crowdveil_clock_trusted 1" in plain.get(f"{server.address}/metrics").text

    server = make_server()
    assert trusted(server)
    server.stop()
    (server.home / "clock.json").write_text('{"last_seen": "2020-01-01T00:00:00+00:00", "jumped": false}')
    server.start()
    assert not trusted(server)
    assert server.log_path.read_text().count("warning: the clock has jumped") == 1
    server.stop()
    confirmed = Server(server.home, "", "--confirm-clock")
    try:
        assert trusted(confirmed)
        assert server.log_path.read_text().count("warning: the clock has jumped") == 1
    finally:
        confirmed.end()
