"""Limits on how much and how often, kept in memory only: no address is ever stored."""

from __future__ import annotations

import hashlib
import ipaddress
import math
import secrets
import threading
import time

from django.conf import settings
from django.http import HttpRequest

from crowdveil.broker.problems import Refusal

_lock = threading.Lock()
_buckets: dict[bytes, tuple[float, float]] = {}
_MOST_BUCKETS = 100_000
_REFILLED_SECONDS = 60.0
# Names in the buckets are hashed under a key that dies with the process.
_key = secrets.token_bytes(16)


def limit(name: str, per_minute: int) -> None:
    """A token bucket: a minute's worth at once, then at the rate; 0 is no limit."""
    if not per_minute:
        return
    digest = hashlib.blake2b(name.encode(), key=_key, digest_size=16).digest()
    now = time.monotonic()
    with _lock:
        left, since = _buckets.get(digest, (float(per_minute), now))
        left = min(float(per_minute), left + (now - since) * per_minute / 60)
        _buckets[digest] = (left - 1 if left >= 1 else left, now)
        if len(_buckets) > _MOST_BUCKETS:
            _make_room(now)
    if left < 1:
        wait = math.ceil((1 - left) * 60 / per_minute)
        raise Refusal("rate-limited", f"too many requests; wait {wait} s", retry_after_seconds=wait)


def _make_room(now: float) -> None:
    """Forget those that are full again by now, then the oldest: a flood of new names must not free an old one."""
    for digest in [digest for digest, (_, since) in _buckets.items() if now - since > _REFILLED_SECONDS]:
        del _buckets[digest]
    oldest = sorted(_buckets, key=lambda digest: _buckets[digest][1])
    for digest in oldest[: max(0, len(oldest) - _MOST_BUCKETS // 2)]:
        del _buckets[digest]


def limit_address(request: HttpRequest, purpose: str, per_minute: int) -> None:
    """The same for requests without a token, by where they come from."""
    limit(f"{purpose} {network_of(request, v4_bits=32)}", per_minute)


def network_of(request: HttpRequest, *, v4_bits: int = 24) -> str:
    """Where a request comes from. Of an IPv6 address half is the caller's own to choose, so it does not count."""
    address = request.META.get("REMOTE_ADDR", "")
    if settings.BEHIND_PROXY:
        # The last entry is the one our own proxy wrote; those before it are whatever the client claimed.
        address = request.META.get("HTTP_X_FORWARDED_FOR", address).rpartition(",")[2].strip()
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    bits = v4_bits if found.version == 4 else 64
    return str(ipaddress.ip_network(f"{found}/{bits}", strict=False))
