"""Slow senders keep nobody waiting: a real server on loopback with fewer threads than there are of them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from crowdveil.bench._postgres import free_port

SECONDS, SOON = 1.0, 3.0
_PATHS = os.pathsep.join(("src", "tests"))
HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
SLOW = {
    "silent": b"",
    "in the head": b"GET / HTTP/1.1\r\nHo",
    "in the body": HEAD + b"Content-Length: 500\r\n\r\n{",
    "in much": HEAD + b"Content-Length: 99000\r\n\r\n{",
    "behind zeros": HEAD + b"Content-Length: %020d\r\n\r\n{" % 500,
    "between lines": b"\r\n",
}
AT_ONCE = {
    "in chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
    "announced too large": HEAD + b"Content-Length: 100001\r\n\r\nab",
    "the connection stays": HEAD + b"Connection: close\r\n\r\n",
}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    chosen, log = free_port(), tmp_path_factory.mktemp("reception") / "log"
    program = str(Path(__file__).with_name("patient.py"))
    with log.open("wb") as written:
        command = [sys.executable, program, str(chosen), str(SECONDS)]
        process = subprocess.Popen(command, stdout=written, stderr=written, env=os.environ | {"PYTHONPATH": _PATHS})
    try:
        until(lambda: answers(chosen), explain=log.read_text)
        yield chosen
        # Nobody and nothing is left but the one who asks.
        until(lambda: worker(chosen)[1:] == [b"1", b"%d" % len(request(b""))], 10, explain=lambda: str(worker(chosen)))
    finally:
        process.terminate()
        process.wait(30)
        assert "Traceback" not in log.read_text()


def answers(port: int) -> bool:
    try:
        return said(opened(port, request(b"abc"))).endswith(b"\r\n\r\n3")
    except ConnectionRefusedError:
        return False


def request(body: bytes, more: bytes = b"Connection: close\r\n") -> bytes:
    return HEAD + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def worker(port: int) -> list[bytes]:
    """Its process, and how many connections and bytes it has."""
    found = re.search(rb"Worker: (.*)\r\n", said(opened(port, request(b""))))
    assert found
    return found[1].split()


def opened(port: int, first: bytes, seconds: float = 20) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=seconds)
    connection.sendall(first)
    return connection


def said(connection: socket.socket) -> bytes:
    """All that is said until the connection ends."""
    with connection:
        return b"".join(iter(lambda: connection.recv(4096), b""))


def test_many_slow_senders_keep_nobody_waiting_and_are_put_out(port: int) -> None:
    with ExitStack() as held:
        slow = {
            how: [held.enter_context(opened(port, first)) for _ in range(12)] for how, first in (SLOW | AT_ONCE).items()
        }
        begun = time.monotonic()
        for _ in range(3):
            assert said(opened(port, request(b"honest"), SOON)).endswith(b"\r\n\r\n6")
            for connection in slow["in the body"]:
                connection.sendall(b"a")
        replies = {how: {said(each).partition(b"\r\n")[0] for each in those} for how, those in slow.items()}
        assert time.monotonic() - begun < SECONDS + SOON
    too_slow = {b"HTTP/1.1 408 Request Timeout"}
    assert replies == {how: {b"HTTP/1.1 200 OK"} for how in AT_ONCE} | {
        "silent": {b""},
        "between lines": {b""},
        "in the head": too_slow,
        "in the body": too_slow,
        "in much": too_slow,
        "behind zeros": too_slow,
    }


def test_the_broker_itself_has_a_reception(sqlite_server: Any) -> None:
    with ExitStack() as held:
        for _ in range(40):
            held.enter_context(opened(sqlite_server.port, SLOW["in the head"]))
        assert said(opened(sqlite_server.port, b"GET /healthz HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.0 200 OK")


def test_a_request_in_pieces_is_put_together_and_another_may_follow(port: int) -> None:
    with opened(port, b"\r\n" + HEAD) as connection:
        for piece in (b"Content-Le", b"ngth: 4\r\n\r", b"\nab", b"cd"):
            connection.sendall(piece)
        first = connection.recv(4096)
        while not first.endswith(b"\r\n\r\n4"):
            more = connection.recv(4096)
            assert more, first
            first += more
        connection.sendall(request(b"x" * 70_000))
        assert said(connection).endswith(b"\r\n\r\n70000")


@pytest.mark.parametrize("asked", [b"Expect: 100-continue", b"expect:100-Continue"])
def test_who_asks_whether_to_go_on_is_told_so(port: int, asked: bytes) -> None:
    with opened(port, HEAD + b"Connection: close\r\n" + asked + b"\r\nContent-Length: 3\r\n\r\n") as connection:
        assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"abc")
        assert said(connection).endswith(b"\r\n\r\n3")


def test_what_comes_before_a_reply_begins_the_next_request_and_waits_like_any_other(port: int) -> None:
    first, second = request(b"first", b""), request(b"second", b"")
    with ExitStack() as held:
        both = [held.enter_context(opened(port, first + second + b"POST / HT")) for _ in range(4)]
        assert said(opened(port, request(b"honest"), SOON)).endswith(b"\r\n\r\n6")
        for each in both:
            assert re.findall(rb"HTTP/1.1 (\d+)", said(each)) == [b"200", b"200", b"408"]


def test_a_head_without_end_is_refused(port: int) -> None:
    assert said(opened(port, HEAD + b"X: " + b"x" * 70_000)).startswith(b"HTTP/1.1 431 ")


def test_whoever_holds_most_makes_room_for_the_others(port: int) -> None:
    announced = HEAD + b"Content-Length: 100000\r\n\r\n"
    with opened(port, announced + b"x" * 80_000) as hog, opened(port, announced + b"x" * 75_000):
        assert said(opened(port, request(b"x" * 60_000), SOON)).endswith(b"\r\n\r\n60000")
        assert said(hog).startswith(b"HTTP/1.1 503 ")


def test_http_1_0_knows_no_going_on(port: int) -> None:
    asking = request(b"abc", b"Expect: 100-continue\r\n").replace(b"HTTP/1.1", b"HTTP/1.0")
    assert said(opened(port, asking)).startswith(b"HTTP/1.0 200 OK")


@pytest.mark.parametrize("first", [b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\nHost: localhost\n\n"])
def test_what_is_no_head_is_refused_at_once(port: int, first: bytes) -> None:
    begun = time.monotonic()
    assert said(opened(port, first)).startswith(b"HTTP/1.1 400 ")
    assert time.monotonic() - begun < SECONDS


def test_who_is_put_out_may_have_sent_more_in_the_same_moment(port: int) -> None:
    announced, process = HEAD + b"Content-Length: 100000\r\n\r\n", int(worker(port)[0])
    with opened(port, announced + b"x" * 80_000) as hog, opened(port, announced + b"x" * 66_000) as other:
        until(lambda: int(worker(port)[2]) > 146_000)
        os.kill(process, signal.SIGSTOP)
        try:
            other.sendall(b"x" * 9_000)
            hog.sendall(b"x")
        finally:
            os.kill(process, signal.SIGCONT)
        assert said(hog).startswith(b"HTTP/1.1 503 ")
    assert int(worker(port)[0]) == process


def test_what_waits_for_a_thread_is_held_too(port: int, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    later = request(b"x" * 50_000, b"Connection: close\r\nGate: %s\r\n" % bytes(gate))
    with ExitStack() as held:
        waiting = [held.enter_context(opened(port, later)) for _ in range(3)]
        assert said(opened(port, HEAD + b"Content-Length: 99000\r\n\r\n" + b"x" * 68_000)).startswith(b"HTTP/1.1 503 ")
        gate.touch()
        assert [said(each)[-5:] for each in waiting] == [b"50000"] * 3


def test_who_does_not_read_a_reply_keeps_a_thread_for_a_moment_only(port: int) -> None:
    with ExitStack() as held:
        for _ in range(2):
            held.enter_context(opened(port, request(b"").replace(b"POST /", b"POST /large")))
        assert said(opened(port, request(b"honest"))).endswith(b"\r\n\r\n6")


@pytest.mark.parametrize("first", [b"", SLOW["in the head"], request(b"", b"")], ids=["silent", "begun", "kept"])
def test_more_connections_than_descriptors_keep_nobody_waiting(port: int, first: bytes) -> None:
    before, begun = worker(port)[0], time.monotonic()
    with ExitStack() as held:
        for _ in range(300):
            held.enter_context(opened(port, first))
        assert worker(port)[0] == before
        assert time.monotonic() - begun < SECONDS
