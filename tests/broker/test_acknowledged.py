"""Acknowledged submissions are counted outside the database, and a start says what a damaged log has lost."""

from __future__ import annotations

import secrets
import signal
import struct
from pathlib import Path
from typing import Any

import pytest
from broker import plain
from broker.scene import Scene
from broker.test_races import submission

N = 24
_HEADER, _FRAME_HEADER = 32, 24


def spoil_frame(wal: Path, share: float) -> None:
    """Flip one byte in a frame that belongs to the present log: so far into it that this share of frames is before."""
    content = bytearray(wal.read_bytes())
    [page_size], salts = struct.unpack(">I", content[8:12]), content[16:24]
    size = _FRAME_HEADER + page_size
    frames = [
        start for start in range(_HEADER, len(content) - size + 1, size) if content[start + 8 : start + 16] == salts
    ]
    content[frames[int(share * len(frames))] + _FRAME_HEADER + 100] ^= 1
    wal.write_bytes(content)


def test_a_spoiled_frame_of_the_log_is_said_at_the_start(make_server: Any, make_draft: Any) -> None:
    server = make_server()
    requester = server.requester("spoiled")
    # No estimates are made meanwhile: the submissions are the last that is written.
    study = requester.create(make_draft(minimum_n=100))
    requester.open(study)
    signed = server.broker().call("GET", f"/studies/{study}")
    tokens = [server.worker_token() for _ in range(N)]
    with plain.Client(base_url=f"{server.address}/api/v1") as http:
        for token in tokens:
            headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": secrets.token_hex(16)}
            body = submission(signed["definition"], signed["sha256"])
            assert http.post(f"/studies/{study}/submissions", json=body, headers=headers).status_code == 201
    server.stop(signal.SIGKILL)
    spoil_frame(server.home / "crowdveil.sqlite3-wal", 0.95)
    server.start()
    n_lost = N - requester.progress(study)["taken"]
    assert 0 < n_lost < N
    said = f"study {study} has lost {n_lost} of {N} acknowledged submissions"
    assert server.log_path.read_text().count(said) == 1
    audit = server.broker(server.operator()).call("GET", "/operator/audit?limit=1000")
    assert (f"study.lost-{n_lost}", study) in {(act["verb"], act["subject"]) for act in audit["items"]}
    # Said once; from here on the count is that of what is left.
    server.stop(signal.SIGKILL)
    server.start()
    assert server.log_path.read_text().count("acknowledged submissions") == 1


def test_the_count_holds_nothing_but_a_number(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.studies import lifecycle
    from crowdveil.broker.submissions.acknowledged import find_losses
    from crowdveil.broker.submissions.withdraw import withdraw

    scene = Scene(make_draft(minimum_n=2))
    count = django_here / "acknowledged" / scene.study.id
    for expected in range(4):
        assert (count.read_bytes(), count.stat().st_mode & 0o777) == (b"." * expected, 0o600)
        scene.submit(scene.worker(), {"ill": 0, "days": 0})
    withdraw(scene.study.id, scene.withdrawal_key.hex())
    assert find_losses() == []
    lifecycle.close(scene.study)
    assert not count.exists()


@pytest.mark.parametrize("n_counted", [None, 0, 1])
def test_a_count_that_is_too_small_or_missing_is_no_alarm(
    django_here: Path, make_draft: Any, n_counted: int | None
) -> None:
    from crowdveil.broker.submissions.acknowledged import find_losses

    scene = Scene(make_draft())
    count = django_here / "acknowledged" / scene.study.id
    scene.submit(scene.worker(), {"ill": 0, "days": 0})
    if n_counted is None:
        count.unlink()
    else:
        count.write_bytes(b"." * n_counted)
    assert find_losses() == []
    assert count.stat().st_size == (1 if n_counted is None else n_counted)
