"""With a draw in which every report differs from its answer, no answer is found anywhere the broker could look."""

from __future__ import annotations

import hashlib
import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from broker import plain
from broker.ready import Ready

from crowdveil.channel import Channel
from crowdveil.client import Broker, Worker

ROTATE_BITS = 32


class NeverTheTruth:
    """Bytes for the rotate sampler that always land on another symbol than the answer: u = 2^32 − 1."""

    def take(self, n_bytes: int) -> bytes:
        return b"\xff" * n_bytes


class Recorded(httpx.HTTPTransport):
    """Everything this device sends, as bytes."""

    def __init__(self, sent: list[bytes]) -> None:
        super().__init__()
        self._sent = sent

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._sent.append(
            str(request.url).encode() + b"\n" + bytes(request.headers.raw.__repr__(), "utf-8") + request.read()
        )
        return super().handle_request(request)


@pytest.mark.parametrize("protects", [False, True], ids=["visible", "protected"])
def test_no_answer_in_requests_logs_or_database(
    protects: bool, sqlite_server: Any, make_draft: Any, tmp_path: Path
) -> None:
    # Options that occur nowhere else, so that finding one means that it leaked.
    options = [f"option-{letter * 12}" for letter in "abcdefgh"]
    question = {"id": "secret", "text": "Which?", "domain": {"type": "choices", "options": options}}
    levels = [{"name": "medium", "mechanism": "randomized-response", "epsilon": "1", "pay_cents": 20}]
    requester = sqlite_server.requester(f"leaks {protects}")
    study = requester.create(make_draft(questions=[question], levels=levels, protects_participation=protects))
    requester.open(study)

    sent: list[bytes] = []
    codes = []
    for code, option in enumerate(options):
        broker = Broker(sqlite_server.address, transport=Recorded(sent))
        with Worker(broker, tmp_path / str(code), entropy=NeverTheTruth()) as worker:
            worker.sign_up()
            parcel = worker.answer(study, {"secret": option})
            assert parcel.reports[0]["report"] != code
            codes.append((code, parcel.reports[0]["report"]))

    bodies = b"\n".join(sent)
    assert not [option for option in options if option.encode() in bodies]
    for body in (part for part in sent if b"/submissions" in part):
        fields = json.loads(body[body.index(b'{"study_sha256"') :])
        assert set(fields) == {"study_sha256", "level", "consent_version", "withdrawal_sha256", "reports"}
        assert [set(report) for report in fields["reports"]] == [{"question", "channel", "report"}]

    log = sqlite_server.log_path.read_text()
    assert not [option for option in options if option in log]
    _check_database(sqlite_server, study, options, [report for _, report in codes])


def _check_database(server: Any, study: str, options: list[str], reports: list[int]) -> None:
    import sqlite3

    with sqlite3.connect(f"file:{server.home}/crowdveil.sqlite3?mode=ro", uri=True) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            # The definition lists the options for everybody; it is the one place where they may stand.
            for row in connection.execute(f"SELECT * FROM {table}"):
                cells = [cell for cell in row if isinstance(cell, str)]
                assert table == "studies_study" or not [o for o in options for cell in cells if o in cell]
        stored = connection.execute("SELECT codes FROM intake_submission WHERE study = ?", (study,)).fetchall()
    connection.close()
    found = sorted(int(np.frombuffer(codes, "<u2")[0]) for (codes,) in stored)
    assert found == sorted(reports)


def test_the_injected_draw_is_one_the_sampler_really_uses() -> None:
    from crowdveil.domain import Choices
    from crowdveil.mechanisms import mechanism
    from crowdveil.sampler import draw

    channel: Channel = mechanism("randomized-response", epsilon=1.0).channel(Choices(("a", "b", "c")))
    answers = np.array([0, 1, 2])
    assert (draw(channel, answers, NeverTheTruth()) != answers).all()
    assert channel.bits == ROTATE_BITS


def test_pseudonyms_differ_between_studies_and_links_break_at_close(
    sqlite_server: Any, make_draft: Any, tmp_path: Path
) -> None:
    import sqlite3

    requester = sqlite_server.requester("two studies")
    studies = [requester.create(make_draft(title=f"s{n}", minimum_n=2)) for n in range(2)]
    for study in studies:
        requester.open(study)
    for number in range(3):
        with Worker(Broker(sqlite_server.address), tmp_path / f"p{number}", epsilon_cap=20) as worker:
            worker.sign_up()
            for study in studies:
                worker.answer(study, {"ill": "no", "days": 1})

    def rows(study: str) -> list[tuple[Any, ...]]:
        columns = "pseudonym, receipt, idempotency, withdrawal_sha256, rowid, id"
        with sqlite3.connect(f"file:{sqlite_server.home}/crowdveil.sqlite3?mode=ro", uri=True) as connection:
            found = connection.execute(f"SELECT {columns} FROM intake_submission WHERE study = ?", (study,)).fetchall()
        connection.close()
        return found

    first, second = rows(studies[0]), rows(studies[1])
    for column in range(4):
        assert not {row[column] for row in first} & {row[column] for row in second}
    requester.close(studies[0])
    sealed = rows(studies[0])
    assert {row[1:3] for row in sealed} == {("", "")}
    # Rows now lie in the order of their random ids: their place says nothing about when they came.
    assert [row[5] for row in sorted(sealed, key=lambda row: row[4])] == sorted(row[5] for row in sealed)
    assert not (sqlite_server.home / "study-keys" / studies[0]).exists()
    assert (sqlite_server.home / "study-keys" / studies[1]).exists()


def test_postgresql_logs_no_statement_when_something_comes_twice(
    postgres: Any, postgres_server: Any, make_draft: Any
) -> None:
    """A statement that failed stands in the database's log with all its values: who, at which moment, what."""
    ready = Ready(postgres_server, make_draft)
    tokens, key = [postgres_server.worker_token() for _ in range(2)], secrets.token_bytes(32)
    before = len(postgres.log())
    ready.token = tokens[0]
    place = f"{postgres_server.address}/api/v1/studies/{ready.study}"
    wanted = {"level": "medium", "study_sha256": ready.signed["sha256"]}
    head = {"Authorization": f"Bearer {ready.token}"}
    body = ready.body() | {"withdrawal_sha256": hashlib.sha256(key).hexdigest()}
    with ThreadPoolExecutor(8) as pool:
        held = pool.map(lambda _: plain.put(f"{place}/reservation", json=wanted, headers=head).status_code, range(8))
        assert sorted(held) == [*[200] * 7, 201]
        stored = pool.map(lambda _: ready.post(body, key="the-same-key-for-all").status_code, range(8))
        assert sorted(stored) == [*[200] * 7, 201]
    ready.token = tokens[1]
    assert ready.post(body).status_code == 409
    assert plain.post(f"{place}/withdrawals", json={"withdrawal_key": key.hex()}).status_code == 200
    ready.token = tokens[0]
    assert ready.post(body).status_code == 410
    assert "STATEMENT" not in postgres.log()[before:]
