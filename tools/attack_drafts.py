"""Attack a broker with expensive drafts: six requesters' drafts at once, while an anonymous visitor counts the seconds.

Run by hand, on loopback only and bounded in time and memory: `python tools/attack_drafts.py --scales 200`. It starts a
broker of its own, and prints how long anonymous requests took, the peak of memory, and the CPU that the broker went on
using after the clients had gone.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import statistics
import sys
import threading
import time
from typing import Any

from crowdveil.bench._serving import Running, serving

DRAFTS = 6
LEVELS_OF_A_SCALE = 900
MAX_BYTES = 6e9
PROBE_TIMEOUT = 10.0


def say(*lines: str) -> None:
    sys.stdout.write("\n  ".join(lines) + "\n")


def draft(number: int, n_scales: int) -> bytes:
    """Distinct scales and distinct ε, so that no channel equals another one."""
    scales = [
        {
            "id": f"q{place}",
            "text": "?",
            "domain": {"type": "scale", "low": str(place), "high": str(place + LEVELS_OF_A_SCALE - 1)},
        }
        for place in range(n_scales)
    ]
    levels = [
        {"name": name, "mechanism": "discrete-laplace", "epsilon": f"{epsilon}{number}", "pay_cents": 1}
        for name, epsilon in (("low", "0.3"), ("medium", "0.2"), ("high", "0.1"))
    ]
    fields: dict[str, Any] = {"title": "t", "purpose": "p", "consent_text": "c", "quota": 20, "budget_cents": 1}
    return json.dumps(fields | {"questions": scales, "levels": levels}).encode()


def send(running: Running, number: int, n_scales: int, seconds: float, replies: list[str]) -> None:
    """Send one draft and hang up after so many seconds, whether or not a reply has come."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=seconds)
    begun = time.monotonic()
    try:
        headers = {"Authorization": f"Bearer {running.seed['requester']}"}
        connection.request("POST", "/api/v1/requester/studies", draft(number, n_scales), headers)
        reply = connection.getresponse()
        detail = json.loads(reply.read()).get("detail", "")
        replies.append(f"{reply.status} after {time.monotonic() - begun:.1f} s {detail}")
    except OSError as error:
        replies.append(f"{type(error).__name__} after {time.monotonic() - begun:.1f} s")
    finally:
        connection.close()


def probe(running: Running, path: str) -> float:
    """The seconds of one anonymous request; the time-out where nothing came."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PROBE_TIMEOUT)
    begun = time.monotonic()
    try:
        connection.request("GET", path)
        connection.getresponse().read()
    except OSError:
        return PROBE_TIMEOUT
    finally:
        connection.close()
    return time.monotonic() - begun


def attack(running: Running, n_scales: int, seconds: float) -> None:
    quiet = [probe(running, "/api/v1/studies") for _ in range(20)]
    running.forget_peak()
    say(f"a draft has {len(draft(0, n_scales))} bytes; before: {running.memory() / 1e6:.0f} MB, {spell(quiet)}")
    replies: list[str] = []
    senders = [
        threading.Thread(target=send, args=(running, number, n_scales, seconds, replies)) for number in range(DRAFTS)
    ]
    for sender in senders:
        sender.start()
    latencies, end = [], time.monotonic() + seconds
    while time.monotonic() < end and running.memory() < MAX_BYTES:
        latencies.append(probe(running, "/api/v1/studies"))
        time.sleep(0.05)
    for sender in senders:
        sender.join()
    say("replies:", *replies)
    say(f"during: {spell(latencies)}; peak {running.peak_memory() / 1e6:.0f} MB")
    used = running.cpu_seconds()
    after = [probe(running, "/api/v1/studies") for _ in range(3)]
    time.sleep(seconds / 2)
    say(f"CPU in the {seconds / 2:.0f} s after the clients had gone: {running.cpu_seconds() - used:.1f} s")
    say(f"after: {spell(after)}; peak {running.peak_memory() / 1e6:.0f} MB")


def spell(latencies: list[float]) -> str:
    timed_out = sum(latency >= PROBE_TIMEOUT for latency in latencies)
    median, most = 1e3 * statistics.median(latencies), 1e3 * max(latencies)
    return f"{len(latencies)} anonymous requests, median {median:.0f} ms, most {most:.0f} ms, {timed_out} timed out"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", type=int, default=200, help="different scales of a draft")
    parser.add_argument("--seconds", type=float, default=30.0, help="until the clients hang up")
    options = parser.parse_args()
    with serving("", n_workers=1) as running:
        try:
            attack(running, min(options.scales, 200), min(options.seconds, 120.0))
        finally:
            os.killpg(running.process.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
