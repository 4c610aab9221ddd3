"""Posting a notice to a requester's server and to nowhere else: its name is looked up once, and what was found is used.

A name that points to a public address when it is checked and to a private one when it is used (DNS rebinding) would
turn the broker into a door to its own network. So the address that was checked is the address that is connected to;
the name stays in the Host header and in TLS, where the certificate must fit it. Redirects are not followed.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from crowdveil.broker.problems import Refusal

_SECONDS = 5.0
# The whole delivery: a server that sends one byte at a time must not keep others waiting.
_DEADLINE = 10.0
# IPv4 addresses that stand inside IPv6 ones: RFC 6052, and ISATAP's interface identifiers (RFC 5214).
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)
_UNICAST = ipaddress.ip_network("2000::/3")
# Special-purpose addresses (RFC 6890 and IANA's registries) that some versions of Python take for global ones.
_SPECIAL = [
    ipaddress.ip_network(text)
    for text in ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], list[str]]


def look_up(host: str, port: int) -> list[str]:
    """The addresses behind a name, as the system finds them."""
    return [str(address[4][0]) for address in socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)]


@dataclass(frozen=True, slots=True)
class Target:
    """A checked place: where to connect, and the name to ask for there."""

    address: str
    host: str
    port: int
    path: str
    tls: bool


def resolve_target(url: str, *, resolve: Resolve = look_up) -> Target:
    """Only https to public addresses, unless the operator allows a private network."""
    parts = urlsplit(url)
    allowed = ("http", "https") if settings.WEBHOOKS_TO_PRIVATE_ADDRESSES else ("https",)
    if parts.scheme not in allowed or not parts.hostname or "@" in parts.netloc:
        raise Refusal("invalid", "the address of a webhook must start with https:// and carry no user name")
    port = _port(parts)
    try:
        addresses = resolve(parts.hostname, port)
    except (OSError, UnicodeError):
        raise Refusal("invalid", f"the host {parts.hostname} of the webhook is not known") from None
    if not settings.WEBHOOKS_TO_PRIVATE_ADDRESSES and not all(map(is_public, addresses)):
        raise Refusal("invalid", "the address of a webhook must be public")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(addresses[0], parts.hostname, port, path, parts.scheme == "https")


def _port(parts: SplitResult) -> int:
    try:
        return parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise Refusal("invalid", "the port of the webhook must be a number from 1 to 65535") from None


def is_public(text: str) -> bool:
    """Whether an address belongs to the open internet, however it is written.

    >>> [is_public(text) for text in ("9.9.9.9", "10.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "ff02::1")]
    [True, False, False, False, False]
    """
    return all(map(_is_ordinary, _with_embedded(text)))


def _is_ordinary(address: Address) -> bool:
    """A global unicast address of no special purpose; the one prefix beyond 2000::/3 is that of translated IPv4."""
    unicast = address.version == 4 or address in _UNICAST or address in _NAT64
    special = any(address in network for network in _SPECIAL)
    return unicast and not special and address.is_global and not address.is_multicast


def _with_embedded(text: str) -> list[Address]:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    inside: list[Any] = [address.sixtofour, *(address.teredo or ())]
    if address in _NAT64 or int(address) >> 32 & 0xFFFFFFFF in _ISATAP:
        inside.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    # A mapped address is the IPv4 address, and its own range is not global.
    outer: Address = address.ipv4_mapped or address
    return [outer, *(each for each in inside if each is not None)]


def post(target: Target, body: bytes, headers: dict[str, str], *, context: ssl.SSLContext | None = None) -> bool:
    """Whether the server took it; anything but a 2xx, a redirect included, is a no."""
    connection = http.client.HTTPConnection(target.host, target.port, timeout=_SECONDS)
    try:
        connection.sock = _connect(target, context)
        with _deadline(connection.sock):
            connection.request("POST", target.path, body, headers)
            return 200 <= connection.getresponse().status < 300
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()


def _connect(target: Target, context: ssl.SSLContext | None) -> socket.socket:
    plain = socket.create_connection((target.address, target.port), _SECONDS)
    if not target.tls:
        return plain
    try:
        return (context or ssl.create_default_context()).wrap_socket(plain, server_hostname=target.host)
    except BaseException:
        plain.close()
        raise


@contextmanager
def _deadline(connected: socket.socket) -> Iterator[None]:
    def hang_up() -> None:
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(_DEADLINE, hang_up)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
