"""Requests are taken in whole before a thread is given to them, so that whoever sends slowly keeps nobody waiting.

gunicorn gives a thread to a connection as soon as there is something to read, and the thread waits for the rest: as
many slow senders as there are threads would stop the broker. Here the loop that watches all connections takes in the
rest, too. Who takes too long is put out, and the loop itself never waits for one of them, not even to say goodbye.
"""

from __future__ import annotations

import errno
import re
import resource
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from selectors import EVENT_READ
from typing import Any

from django.conf import settings
from gunicorn import util
from gunicorn.workers.gthread import TConn, ThreadWorker

from crowdveil.broker.middleware.request_log import finished

SECONDS = 10.0
"""So long a request may take until it is there, and a second longer for every BYTES_A_SECOND that have come."""
BYTES_A_SECOND = 10_000
STANDSTILL = 30.0
"""So long a thread waits for a client who takes nothing of its reply."""
_LARGEST_HEAD, _MOST_HELD, _PIECE = 1 << 16, 1 << 26, 1 << 16
_LINGERING = 2.0
"""Seconds in which a client may read a last reply; closing at once could take it away from one who is still sending."""
_DESCRIPTORS_OF_A_THREAD, _OTHER_DESCRIPTORS = 4, 40
"""A database and its journals for each thread, and what a process has open besides."""
_END = b"\r\n\r\n"
_NO_HEAD = re.compile(rb"\A[^A-Z]|(?<!\r)\n")
"""What no head of a request begins with (TLS does), or a line that ends otherwise than lines of heads do."""
_ASKS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*\r\n", re.IGNORECASE)
_NOT_UNDERSTOOD, _TOO_SLOW, _TOO_LONG, _TOO_MUCH = (
    (400, "Bad Request"),
    (408, "Request Timeout"),
    (431, "Request Header Fields Too Large"),
    (503, "Service Unavailable"),
)


@dataclass(slots=True)
class Arrival:
    """What has come of a request; `size` is known, with its body, when the head has come."""

    begun: float
    until: float
    data: bytearray = field(default_factory=bytearray)
    size: int | None = None


def body_size(head: bytes) -> int | None:
    """How long a body the head announces; None where it does not say so plainly."""
    lines = head.lower().split(b"\r\n")[1:]
    told = [line.partition(b":")[2].strip() for line in lines if line.startswith(b"content-length:")]
    if any(line.startswith(b"transfer-encoding:") for line in lines) or len(told) > 1:
        return None
    if not told:
        return 0
    # The server behind takes a number for the same with any zeros before it.
    size = told[0].lstrip(b"0")
    return int(b"0" + size) if told[0].isdigit() and len(size) < 16 else None


def asks_whether_to_go_on(head: bytes) -> bool:
    """Whether the client waits for a word before it sends the body; in HTTP/1.0 there is no such word."""
    return bool(_ASKS.search(head)) and not head.partition(b"\r\n")[0].endswith(b" HTTP/1.0")


class Connection(TConn):
    """A connection; `whole` while its requests were, so that others may follow, and the `rest` is what has of them.

    `n_held` bytes are kept for the thread that works on it, or for when that is done.
    """

    def __init__(self, *about: Any, leave: Callable[[Connection], None]) -> None:
        super().__init__(*about)
        self.whole, self.rest, self.n_held, self._leave = True, b"", 0, leave

    def close(self, graceful: bool = False) -> None:
        if graceful:
            self._leave(self)
        else:
            util.close(self.sock)


class Reception(ThreadWorker):
    """gunicorn's threads, behind a loop that hands them whole requests."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._arriving: dict[Connection, Arrival] = {}
        self._leaving: dict[Connection, float] = {}
        self._held, self._looked = 0, 0.0
        self.worker_connections: int = min(self.cfg.worker_connections, _most_connections(self.cfg.threads))
        self.max_keepalived = self.worker_connections - self.cfg.threads

    def accept(self, listener: socket.socket) -> None:
        try:
            client, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self.nr_conns += 1
        _never_wait_for_ever(client)
        conn = Connection(self.cfg, client, address, listener.getsockname(), leave=self._left)
        self._expect(conn)

    def on_client_socket_readable(self, conn: Connection, client: socket.socket) -> None:
        """Another request on a connection that was kept."""
        self._expect_another(conn)
        self._take_in(conn, client)

    def handle_request(self, req: Any, conn: Connection) -> bool:
        """A thread's work; who takes nothing of a reply counts as gone."""
        try:
            return bool(super().handle_request(req, conn))
        except BlockingIOError as error:
            raise BrokenPipeError(errno.EPIPE, "the client takes nothing") from error

    def finish_request(self, conn: Connection, fs: Any) -> None:
        """What came behind a request, before its reply, begins another one."""
        self._held -= conn.n_held
        conn.n_held = 0
        super().finish_request(conn, fs)
        if conn.rest and conn in self.keepalived_conns:
            piece, conn.rest = conn.rest, b""
            self._expect_another(conn)
            self._add(conn, piece)

    def murder_pending(self) -> None:
        """Put out those who take too long, and those who have not begun when the broker is to stop."""
        super().murder_pending()
        while self.nr_conns >= self.worker_connections and self._put_one_out():
            pass
        now = time.monotonic()
        if now < self._looked + 0.5:
            return
        self._looked = now
        for conn, arrival in list(self._arriving.items()):
            if arrival.until <= now:
                self._refuse(conn, *_TOO_SLOW)
            elif not self.alive and not arrival.data:
                self._leave(conn)
        for conn, until in list(self._leaving.items()):
            if until <= now:
                self._close(conn)

    def _put_one_out(self) -> bool:
        """Make room for one who may have a whole request: who is only here, longest first, and least harm first."""
        if self._leaving:
            self._close(next(iter(self._leaving)))
        elif self.keepalived_conns:
            conn = self.keepalived_conns.popleft()
            self.poller.unregister(conn.sock)
            self.nr_conns -= 1
            conn.close()
        elif self._arriving:
            self._refuse(next(iter(self._arriving)), *_TOO_MUCH)
        else:
            return False
        return True

    def _expect(self, conn: Connection) -> None:
        now = time.monotonic()
        self._arriving[conn] = Arrival(now, now + SECONDS)
        self.poller.register(conn.sock, EVENT_READ, partial(self._take_in, conn))

    def _expect_another(self, conn: Connection) -> None:
        self.poller.unregister(conn.sock)
        self.keepalived_conns.remove(conn)
        self._expect(conn)

    def _take_in(self, conn: Connection, client: socket.socket) -> None:
        if conn not in self._arriving:
            # Put out by what another one sent, of whom the poller told at the same time.
            return
        piece = _piece(client)
        if piece is None:
            return
        if piece:
            self._add(conn, piece)
        else:
            self._leave(conn)

    def _add(self, conn: Connection, piece: bytes) -> None:
        arrival = self._arriving[conn]
        if not arrival.data:
            # Empty lines before a request are to be ignored.
            piece = piece.lstrip(b"\r\n")
        arrival.data += piece
        self._held += len(piece)
        self._look(conn, arrival, len(piece))
        if self._held > _MOST_HELD and self._arriving:
            self._make_room()

    def _make_room(self) -> None:
        """Put out whoever holds most, so that small requests come through whatever others send."""
        most = max(self._arriving, key=lambda each: len(self._arriving[each].data))
        if len(self._arriving[most].data) > _PIECE:
            self._refuse(most, *_TOO_MUCH)

    def _look(self, conn: Connection, arrival: Arrival, n_new: int) -> None:
        """Hand the request over if it is whole, or if a thread will refuse it without reading on."""
        if arrival.size is None:
            found = arrival.data.find(_END, max(len(arrival.data) - n_new - len(_END) + 1, 0))
            if found < 0:
                if len(arrival.data) > _LARGEST_HEAD:
                    self._refuse(conn, *_TOO_LONG)
                elif _NO_HEAD.search(arrival.data, len(arrival.data) - n_new):
                    self._refuse(conn, *_NOT_UNDERSTOOD)
                return
            head = bytes(arrival.data[: found + len(_END)])
            length = body_size(head)
            if length is None or length > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
                self._hand_over(conn, bytes(arrival.data), whole=False)
                return
            arrival.size = len(head) + length
            if length and asks_whether_to_go_on(head):
                _send(conn.sock, b"HTTP/1.1 100 Continue\r\n\r\n")
        arrival.until = arrival.begun + SECONDS + len(arrival.data) / BYTES_A_SECOND
        if len(arrival.data) >= arrival.size:
            conn.rest = bytes(arrival.data[arrival.size :])
            self._hand_over(conn, bytes(arrival.data[: arrival.size]), whole=True)

    def _hand_over(self, conn: Connection, request: bytes, *, whole: bool) -> None:
        self._forget(conn)
        conn.n_held = len(request) + len(conn.rest)
        self._held += conn.n_held
        conn.whole = whole
        conn.data_ready = True
        conn.init()
        conn.parser.unreader.unread(request)
        self.enqueue_req(conn)

    def _keepalive_after(self, conn: Connection, keepalive: bool) -> bool:
        return conn.whole and super()._keepalive_after(conn, keepalive)

    def _refuse(self, conn: Connection, status: int, reason: str) -> None:
        arrival = self._arriving[conn]
        if arrival.data:
            finished("OTHER", "unknown", status, time.monotonic() - arrival.begun)
            _send(conn.sock, f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode())
        self._leave(conn)

    def _forget(self, conn: Connection) -> None:
        self.poller.unregister(conn.sock)
        self._held -= len(self._arriving.pop(conn).data)

    def _left(self, conn: Connection) -> None:
        """A thread is done with it, and it is not counted any more."""
        self.nr_conns += 1
        self._linger(conn)

    def _leave(self, conn: Connection) -> None:
        self._forget(conn)
        self._linger(conn)

    def _linger(self, conn: Connection) -> None:
        self._leaving[conn] = time.monotonic() + _LINGERING
        try:
            conn.sock.setblocking(False)
            self.poller.register(conn.sock, EVENT_READ, partial(self._drain, conn))
            conn.sock.shutdown(socket.SHUT_WR)
        except (OSError, ValueError):
            self._close(conn)

    def _drain(self, conn: Connection, client: socket.socket) -> None:
        if conn in self._leaving and _piece(client) == b"":
            self._close(conn)

    def _close(self, conn: Connection) -> None:
        del self._leaving[conn]
        with suppress(KeyError, ValueError):
            self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        util.close(conn.sock)


def _piece(client: socket.socket) -> bytes | None:
    """What there is to read: None if nothing yet, nothing if there will be nothing any more."""
    try:
        return client.recv(_PIECE)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _send(client: socket.socket, reply: bytes) -> None:
    """A few bytes, as far as they can go without waiting."""
    with suppress(OSError):
        client.send(reply)


def _most_connections(n_threads: int) -> int:
    """How many the system lets a process have open, less what it needs for its own work."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(allowed - _DESCRIPTORS_OF_A_THREAD * n_threads - _OTHER_DESCRIPTORS, n_threads)


def _never_wait_for_ever(client: socket.socket) -> None:
    """Let a thread give up where nothing moves any more; the loop does not wait anyway."""
    whole, part = divmod(STANDSTILL, 1)
    for direction in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        # Some systems refuse it where the client has gone already.
        with suppress(OSError):
            client.setsockopt(socket.SOL_SOCKET, direction, struct.pack("ll", int(whole), int(part * 1e6)))
