"""Clients that send or read slowly, or not at all, keep nobody waiting; a server process that dies is replaced."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from broker import plain
from waiting import until

from crowdveil.bench._postgres import free_port

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
STUCK = {
    "silent": b"",
    "in the head": b"GET / HTTP/1.1\r\nHo",
    "in the body": HEAD + b"Content-Length: 500\r\n\r\n{",
    "in a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
}
Serve = Callable[..., int]


def request(body: bytes, path: str = "/", headers: bytes = b"Connection: close\r\n") -> bytes:
    head = HEAD.replace(b" / ", f" {path} ".encode()) + headers
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def connect(port: int, first: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(first)
    return connection


def read_all(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection, which it may do with bytes of ours unread."""
    reply = b""
    with connection:
        try:
            while piece := connection.recv(1 << 16):
                reply += piece
        except ConnectionResetError:
            pass
    return reply


def ask(port: int, body: bytes = b"honest") -> bytes:
    return read_all(connect(port, request(body)))


def count_body(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """Reply with the length of the body, or with 16 MiB."""
    body = environ["wsgi.input"].read()
    content = bytes(1 << 24) if environ["PATH_INFO"] == "/large" else str(len(body)).encode()
    start_response("200 OK", [("Content-Length", str(len(content)))])
    return [content[start : start + (1 << 20)] for start in range(0, len(content), 1 << 20)]


@pytest.fixture
def serve(django_here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start the broker's server in this process, with two threads, another application and limits of the test's own."""
    from crowdveil.broker import server

    with ExitStack() as running:

        def start(application: Any = count_body, **limits: float) -> int:
            for name, value in limits.items():
                monkeypatch.setattr(server, name, value)
            return running.enter_context(serving(application))

        yield start


@contextmanager
def serving(application: Any) -> Iterator[int]:
    from crowdveil.broker import server

    with server.listen("127.0.0.1", 0) as listener:
        http_server = server.http_server(application, listener, threads=2, supervisor=os.getppid())
        thread = threading.Thread(target=http_server.run)
        thread.start()
        yield listener.getsockname()[1]
        # As if its supervisor had died.
        http_server._supervisor = 0
        thread.join(30)
        assert not thread.is_alive()
        for channel in list(http_server.active_channels.values()):
            channel.handle_close()
        http_server.trigger.close()


@pytest.mark.parametrize("how", STUCK)
def test_a_thousand_stuck_senders_delay_nobody(sqlite_server: Any, how: str) -> None:
    _allow_descriptors(1500)
    with ExitStack() as open_connections:
        for _ in range(1000):
            open_connections.enter_context(connect(sqlite_server.port, STUCK[how]))
        assert plain.get(f"{sqlite_server.address}/healthz", timeout=20).json() == {"alive": True}
        assert plain.get(f"{sqlite_server.address}/readyz", timeout=20).status_code == 200


def _allow_descriptors(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@pytest.mark.parametrize("how", STUCK)
def test_who_stays_silent_is_disconnected(serve: Serve, how: str) -> None:
    port = serve(MAX_IDLE_SECONDS=1)
    with ExitStack() as open_connections:
        stuck = [open_connections.enter_context(connect(port, STUCK[how])) for _ in range(10)]
        assert ask(port).endswith(b"\r\n\r\n6")
        assert {read_all(connection) for connection in stuck} == {b""}


@pytest.mark.parametrize("how", ["in the head", "in the body"])
def test_who_sends_a_byte_now_and_then_is_disconnected(serve: Serve, how: str) -> None:
    port = serve(MAX_REQUEST_SECONDS=0.5)
    with connect(port, STUCK[how].replace(b"500", b"100000")) as dripping:

        def is_closed() -> bool:
            try:
                dripping.sendall(b"a")
            except (BrokenPipeError, ConnectionResetError):
                return True
            return False

        until(is_closed)
    assert ask(port).endswith(b"\r\n\r\n6")


def test_idle_connections_make_room_for_others(serve: Serve) -> None:
    port = serve(MAX_CONNECTIONS=20, MAX_IDLE_SECONDS=1)
    with ExitStack() as open_connections:
        for first in (b"", request(b"", headers=b"")):
            for _ in range(30):
                open_connections.enter_context(connect(port, first))
        assert ask(port).endswith(b"\r\n\r\n6")


def test_unfinished_bodies_hold_a_bounded_amount_of_memory(serve: Serve) -> None:
    port, announced = serve(MAX_ARRIVING_BYTES=150_000), HEAD + b"Content-Length: 100000\r\n\r\n"
    with connect(port, announced + b"x" * 80_000) as largest, connect(port, announced + b"x" * 75_000) as other:
        assert read_all(largest) == b""
        other.sendall(b"x" * 25_000)
        assert other.recv(15) == b"HTTP/1.1 200 OK"


def test_who_does_not_read_a_reply_keeps_nobody_waiting(serve: Serve) -> None:
    """Three who do not read, for two threads."""
    port = serve(MAX_IDLE_SECONDS=1)
    with ExitStack() as open_connections:
        for _ in range(3):
            open_connections.enter_context(connect(port, request(b"", "/large")))
        assert ask(port).endswith(b"\r\n\r\n6")


class UnreadReply:
    """A connection with a reply in its buffer and no activity since its request: what waitress keeps of it."""

    total_outbufs_len, last_activity, request, requests = 1, 0.0, None, (1,)
    closed = False

    def handle_close(self) -> None:
        self.closed = True


def test_a_late_reply_has_as_much_time_to_be_read_as_an_early_one(django_here: Path) -> None:
    """A request that waited for a thread longer than a reader may was cut off in the middle of its reply."""
    from crowdveil.broker import server

    with server.listen("127.0.0.1", 0) as listener:
        http_server = server.http_server(count_body, listener, threads=1)
        reply, now = UnreadReply(), 1000.0
        http_server.active_channels[-1] = reply
        http_server.maintenance(now)
        http_server.maintenance(now + server.MAX_IDLE_SECONDS)
        assert not reply.closed
        http_server.maintenance(now + server.MAX_IDLE_SECONDS + 1)
        assert reply.closed
        http_server.active_channels.clear()
        http_server.task_dispatcher.shutdown()
        http_server.trigger.close()


def test_a_request_in_pieces_is_put_together_and_another_may_follow(serve: Serve) -> None:
    with connect(serve(), HEAD) as connection:
        for piece in (b"Content-Le", b"ngth: 4\r\n\r", b"\nab", b"cd"):
            connection.sendall(piece)
        first = b""
        while not first.endswith(b"\r\n\r\n4"):
            first += connection.recv(4096)
        connection.sendall(request(b"x" * 70_000))
        assert read_all(connection).endswith(b"\r\n\r\n70000")


def test_requests_may_follow_without_waiting_for_replies(serve: Serve) -> None:
    sizes = range(1, 20)
    requests = b"".join(request(b"x" * size, headers=b"") for size in sizes)
    reply = read_all(connect(serve(), requests + request(b"x" * 20)))
    assert re.findall(rb"\r\n\r\n(\d+)", reply) == [b"%d" % size for size in (*sizes, 20)]


def test_who_asks_whether_to_continue_is_answered(serve: Serve) -> None:
    with connect(
        serve(), HEAD + b"Connection: close\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    ) as connection:
        assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"abc")
        assert read_all(connection).endswith(b"\r\n\r\n3")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (HEAD + b"X: " + b"x" * 70_000, b"431"),
        (HEAD + b"Content-Length: 3000000\r\n\r\n", b"413"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % 2_200_000 + b"x" * 2_200_000, b"413"),
        (HEAD + b"Content-Length: -1\r\n\r\n", b"400"),
        (HEAD + b"Transfer-Encoding: gzip\r\n\r\n", b"501"),
        (HEAD.replace(b"\r\n", b"\n") + b"\n\r\n\r\n", b"400"),
    ],
    ids=["a long head", "a large body", "large chunks", "no length", "an unknown encoding", "bare line feeds"],
)
def test_what_cannot_be_taken_is_refused(serve: Serve, sent: bytes, status: bytes) -> None:
    reply = read_all(connect(serve(), sent))
    assert reply.split()[1] == status
    assert b"waitress" not in reply
    assert b"Server:" not in reply


def test_neither_a_request_nor_a_reply_reaches_a_temporary_file(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda *_: made.append("a file"))
    port = serve(MAX_IDLE_SECONDS=60)
    assert ask(port, b"x" * (1 << 20)).endswith(b"\r\n\r\n1048576")
    assert len(read_all(connect(port, request(b"", "/large")))) > 1 << 24
    assert made == []


def test_what_is_computed_ends_when_its_client_has_gone(serve: Serve) -> None:
    from django.core.handlers.wsgi import WSGIRequest
    from django.http import HttpResponse

    from crowdveil.broker.compute_pool import RequestTimeLimit, compute
    from crowdveil.broker.problems import Refusal
    from crowdveil.progress import report_progress

    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        try:
            while True:
                report_progress("computing", 0)
        except Refusal:
            ended.set()
            raise

    def view(_: Any) -> HttpResponse:
        try:
            compute(work)
        except Refusal:
            return HttpResponse(status=503)
        raise AssertionError

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        response = RequestTimeLimit(view)(WSGIRequest(environ))
        start_response(f"{response.status_code} Unavailable", [])
        return [b""]

    with connect(serve(application), request(b"")):
        assert begun.wait(30)
        assert not ended.is_set()
    # Far less than the time that a request may compute.
    assert ended.wait(10)


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, Path]]:
    port, log = free_port(), tmp_path / "log"
    program = str(Path(__file__).with_name("small_server.py"))
    with log.open("wb") as written:
        process = subprocess.Popen([sys.executable, program, str(port), str(tmp_path)], stdout=written, stderr=written)
    try:
        until(lambda: serving_process(port), explain=log.read_text)
        yield process, port, log
    finally:
        process.kill()
        process.wait(30)


def serving_process(port: int) -> int:
    """Which process answers; 0 where none does."""
    try:
        return int(ask(port).partition(b"\r\n\r\n")[2] or 0)
    except ConnectionRefusedError:
        return 0


def children(process: subprocess.Popen[bytes]) -> set[int]:
    return {child.pid for child in psutil.Process(process.pid).children()}


def test_a_server_process_that_dies_is_replaced(supervised: tuple[subprocess.Popen[bytes], int, Path]) -> None:
    process, port, _ = supervised
    until(lambda: len(children(process)) == 2)
    before = children(process)
    read_all(connect(port, request(b"", "/die")))
    until(lambda: len(children(process) - before) == 1 and len(children(process)) == 2)
    assert until(lambda: serving_process(port)) in children(process)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["asked to stop", "killed"])
def test_no_server_process_outlives_its_supervisor(
    supervised: tuple[subprocess.Popen[bytes], int, Path], number: signal.Signals
) -> None:
    process, _, _ = supervised
    until(lambda: len(children(process)) == 2)
    serving = [psutil.Process(pid) for pid in children(process)]
    process.send_signal(number)
    assert process.wait(30) == (0 if number == signal.SIGTERM else -number)

    def all_ended() -> bool:
        return not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in serving)

    # Asked to stop, it waits for them; killed, it cannot.
    assert all_ended() or (number == signal.SIGKILL and until(all_ended))


def test_a_request_that_fails_is_logged_without_its_path(supervised: tuple[subprocess.Popen[bytes], int, Path]) -> None:
    _, port, log = supervised
    reply = read_all(connect(port, request(b"secret body", "/fail/5ecre7")))
    assert reply.startswith(b"HTTP/1.1 500 ")
    assert b"5ecre7" not in reply
    line = until(lambda: [line for line in log.read_text().splitlines() if "RuntimeError" in line])
    assert "request not understood or not finished" in line[0]
    for secret in ("5ecre7", "secret body", "127.0.0.1", "Traceback"):
        assert secret not in log.read_text()


def test_metrics_are_the_sum_of_all_processes(postgres_server: Any) -> None:
    counted = re.compile(r'crowdveil_requests_total\{method="GET",route="healthz",status="200"\} (\d+)')

    def count() -> int:
        found = counted.search(plain.get(f"{postgres_server.address}/metrics").text)
        return int(found[1]) if found else 0

    before = count()
    for n_requests in range(1, 21):
        # Over a new connection each, which either process may accept.
        assert plain.get(f"{postgres_server.address}/healthz").status_code == 200
        assert count() == before + n_requests
