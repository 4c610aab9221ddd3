"""Small doors that stood open: each of these tests was red once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from broker import plain
from broker.scene import Scene
from disk import room_for

from crowdveil.channel.encoding import compact_form
from crowdveil.cli import _missing
from crowdveil.cli._controls import escape_controls
from crowdveil.errors import ChannelError, InputError


@pytest.mark.parametrize("wrong", [True, False, 1.0, "1", None])
def test_whole_numbers_of_compact_forms_are_nothing_else(wrong: object) -> None:
    with pytest.raises(ChannelError):
        compact_form({"name": "clamp", "noise": ["1"], "offset": wrong, "null_input": False})
    with pytest.raises(ChannelError):
        compact_form({"name": "subset", "size": wrong, "inside": "1", "outside": "1"})


def test_special_addresses_are_not_public(django_here: Path) -> None:
    from crowdveil.broker.webhooks.delivery import is_public

    special = (
        "192.0.0.8 192.88.99.1 100.64.0.1 198.18.0.1 240.0.0.1 64:ff9b:1::a00:1 ::10.0.0.1 ::9.9.9.9 fec0::1 "
        "2002:a00:1:: 2001:0:1::1 3fff::1 5f00::1 2a00::5efe:10.0.0.1 2001:20::1"
    )
    assert [text for text in special.split() if is_public(text)] == []
    assert all(map(is_public, ("9.9.9.9", "2620:fe::fe", "64:ff9b::909:909")))


def test_a_full_disk_is_not_ready(django_here: Path) -> None:
    from django.http import HttpRequest

    from crowdveil.broker.ops.health import readyz

    assert readyz(HttpRequest()).status_code == 200
    with room_for(1000):
        assert readyz(HttpRequest()).status_code == 503
    assert readyz(HttpRequest()).status_code == 200


def test_thousands_of_unknown_keys_are_refused_before_validation(sqlite_server: Any) -> None:
    body = json.dumps({f"k{number}": 0 for number in range(80_000)})
    reply = plain.post(f"{sqlite_server.address}/api/v1/workers", content=body.encode(), timeout=30)
    assert reply.status_code == 400


def test_study_filled_is_announced_once(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.webhooks.models import Notice, Webhook
    from crowdveil.broker.webhooks.notices import announce

    scene = Scene(make_draft())
    Webhook.objects.create(owner=scene.owner, url="https://example.org", events="study.filled", secret="00")
    for _ in range(3):
        announce(scene.study, "study.filled")
    assert Notice.objects.filter(webhook__owner=scene.owner).count() == 1


def test_a_database_url_is_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    from crowdveil.broker.db.config import database_settings

    with pytest.raises(InputError, match="port of --database"):
        database_settings("postgresql://me@host:no/name", tmp_path)
    assert database_settings("postgresql://me@%2Fvar%2FRun/name", tmp_path)["HOST"] == "/var/Run"
    assert database_settings("postgresql://me@[::1]:5432/name", tmp_path)["HOST"] == "::1"


def test_no_package_of_others_is_recommended() -> None:
    assert "pip install" not in _missing("fcntl")
    assert "crowdveil[broker]" in _missing("django")


def test_terminal_escapes_are_spelled() -> None:
    assert escape_controls("a\x1b[2J\x9b\u202e\tb\n") == "a\\u001b[2J\\u009b\\u202e\tb\n"
