"""Serving: waitress, in one process on SQLite, in several over one listening socket on PostgreSQL.

waitress receives requests and sends replies in one loop and gives a thread only to a request that has arrived whole, so
that slow clients keep nobody waiting. Everything stays in memory: a report must not reach a temporary file.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from django.conf import settings
from django.core.signals import request_started
from django.core.wsgi import get_wsgi_application
from django.db import connections, reset_queries
from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer

from crowdveil.broker import background_jobs
from crowdveil.broker.db.transactions import share_one_connection
from crowdveil.broker.middleware.request_log import start_logging

THREADS = 8
"""More would only compete for the processor: neither a slow sender nor a slow reader holds one."""
MAX_CONNECTIONS = 4000
MAX_REQUEST_SECONDS = 60.0
"""So long a request may take to arrive."""
MAX_IDLE_SECONDS = 30.0
"""So long a connection may be silent, and so long a client may take nothing of its reply."""
MAX_ARRIVING_BYTES = 1 << 26
"""Bodies that have not arrived whole may hold so much memory together."""
MAX_WAITING_REPLY_BYTES = 1 << 20
"""So much of a reply may wait for its reader; an export that is longer waits with its thread."""
_OTHER_DESCRIPTORS = 100
"""Files of the database and whatever else a process has open beside its connections."""
_STOP_SECONDS, _RESTART_SECONDS = 20.0, 1.0
_log = logging.getLogger("crowdveil.server")

Wsgi = Callable[..., Any]


class HttpServer(TcpWSGIServer):
    """waitress with limits on slow clients as well as on silent ones."""

    def __init__(
        self, application: Wsgi, listener: socket.socket, adjustments: Adjustments, supervisor: int | None
    ) -> None:
        self._supervisor = supervisor
        self._arriving_since: dict[Any, float] = {}
        self._unread_since: dict[Any, float] = {}
        address = (listener.family, listener.type, listener.proto, listener.getsockname())
        super().__init__(application, {}, True, listener, None, adjustments, address, bind_socket=False)

    def maintenance(self, now: float) -> None:
        """Close, once a second, the connections that are silent or too slow, and end when the supervisor has died."""
        super().maintenance(now)
        if self._supervisor is not None and os.getppid() != self._supervisor:
            raise SystemExit
        channels = list(self.active_channels.values())
        # Since when a reply waits for its reader: a request that was answered late has a reply that is not late at all.
        waiting, self._unread_since = self._unread_since, {}
        for channel in channels:
            if channel.total_outbufs_len:
                since = max(waiting.get(channel, now), channel.last_activity)
                self._unread_since[channel] = since
                if since < now - MAX_IDLE_SECONDS:
                    # At once: waitress would wait until the socket takes more.
                    channel.handle_close()
        arriving = [channel for channel in channels if channel.request is not None]
        known = self._arriving_since
        self._arriving_since = {channel.request: known.get(channel.request, now) for channel in arriving}
        n_bytes = sum(channel.request.body_bytes_received for channel in arriving)
        for channel in sorted(arriving, key=lambda channel: -channel.request.body_bytes_received):
            too_large = n_bytes > MAX_ARRIVING_BYTES
            if too_large or self._arriving_since[channel.request] < now - MAX_REQUEST_SECONDS:
                n_bytes -= channel.request.body_bytes_received
                channel.handle_close()


def http_server(
    application: Wsgi, listener: socket.socket, *, threads: int = THREADS, supervisor: int | None = None
) -> HttpServer:
    """A server on a listening socket, which the other processes of a supervisor share."""
    adjustments = Adjustments(
        sockets=[listener],
        threads=threads,
        connection_limit=_raise_descriptor_limit(MAX_CONNECTIONS),
        channel_timeout=int(MAX_IDLE_SECONDS),
        cleanup_interval=1,
        asyncore_use_poll=True,
        # Read on while a request is being answered: only so is it noticed that its client has gone.
        channel_request_lookahead=1,
        max_request_header_size=1 << 16,
        # A body that is a little too large is refused by Django, in the API's own words.
        max_request_body_size=2 * settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
        inbuf_overflow=sys.maxsize,
        outbuf_overflow=sys.maxsize,
        outbuf_high_watermark=MAX_WAITING_REPLY_BYTES,
        # Django reads the headers of a proxy, where the operator says that there is one.
        clear_untrusted_proxy_headers=False,
        expose_tracebacks=False,
        log_socket_errors=False,
        ident=None,
    )
    return HttpServer(application, listener, adjustments, supervisor)


def _raise_descriptor_limit(connections: int) -> int:
    """Let this process have as many connections open if the system allows it; how many it may have."""
    try:
        import resource  # noqa: PLC0415  # not on Windows, which has no such limit
    except ImportError:
        return connections
    wanted = connections + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else max(min(connections, soft - _OTHER_DESCRIPTORS), THREADS)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; a name that has addresses of both families is served on its IPv4 address."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, *_, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return socket.create_server(address[:2], family=family, backlog=1024)


def run(host: str, port: int, *, processes: int = 1) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    start_logging()
    supervisor = os.getpid()
    with listen(host, port) as listener:
        if processes == 1:
            _serve(listener)
        else:
            supervise(lambda: _serve(listener, supervisor), processes)


def _stop(signal_number: int, frame: Any) -> NoReturn:
    raise SystemExit


def _serve(listener: socket.socket, supervisor: int | None = None) -> None:
    share_one_connection()
    request_started.disconnect(reset_queries)
    application = get_wsgi_application()
    background_jobs.start()
    http_server(application, listener, supervisor=supervisor).run()


def supervise(serve: Callable[[], None], processes: int) -> None:
    """Run `serve` in as many processes, start another one for each that dies, and stop them all at the end."""
    # A connection to the database must not pass a fork.
    connections.close_all()
    children: dict[int, float] = {}
    try:
        while True:
            while len(children) < processes:
                children[_fork(serve)] = time.monotonic()
            process, _ = os.wait()
            started = children.pop(process, None)
            if started is not None:
                _log.warning("a server process died; starting another one")
                time.sleep(max(0.0, started + _RESTART_SECONDS - time.monotonic()))
    except SystemExit:
        _stop_children(set(children))


def _fork(serve: Callable[[], None]) -> int:
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        serve()
        status = 0
    except SystemExit:
        status = 0
    except BaseException as error:  # noqa: BLE001  # the supervisor starts another process
        _log.error("a server process failed", extra={"error": type(error).__name__})
    finally:
        # What was registered to happen at exit is the supervisor's to do.
        logging.shutdown()
        os._exit(status)


def _stop_children(children: set[int]) -> None:
    for process in children:
        os.kill(process, signal.SIGTERM)
    end = time.monotonic() + _STOP_SECONDS
    while children and time.monotonic() < end:
        for process in list(children):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(process, os.WNOHANG)[0] == 0:
                    continue
            children.discard(process)
        time.sleep(0.02)
    for process in children:
        os.kill(process, signal.SIGKILL)
