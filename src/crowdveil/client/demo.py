"""A small crowd for the demonstration: workers of the SDK, each with a home and a ledger of its own."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx

from crowdveil.client.http import Broker, ProblemError
from crowdveil.client.worker import Worker
from crowdveil.entropy import SystemEntropy, below, uniforms

_LEVELS = ("low", "medium", "medium", "high")


def answers_of_somebody() -> dict[str, object]:
    """Seven in ten worked while ill; eight in ten know of deadlines, three in ten of money. One in ten skips."""
    chance = uniforms(SystemEntropy(), 4)
    if chance[0] < 0.1:
        return {}
    ticked = [box for box, p, share in zip(_BOXES, chance[2:], (0.3, 0.8), strict=True) if p < share]
    return {"worked_ill": "yes" if chance[1] < 0.7 else "no", "reasons": ticked}


_BOXES = ("money", "deadline")


def answer_as_crowd(address: str, study: str, n_workers: int) -> None:
    """Let `n_workers` new workers answer, one after the other."""
    _wait_for(address)
    _say(f"{n_workers} workers of the SDK are answering now, each on a device of its own …")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="crowdveil-demo-") as homes:
        for number in range(n_workers):
            patiently(partial(_answer_as_one, address, study, Path(homes) / str(number)))
    _say(f"{n_workers} workers have answered in {time.monotonic() - begun:.0f} s: reload the requester's results")


def _answer_as_one(address: str, study: str, home: Path) -> None:
    level = _LEVELS[int(below(SystemEntropy(), 1, len(_LEVELS))[0])]
    with Worker(Broker(address), home) as worker:
        worker.sign_up(default_level=level)
        worker.answer(study, answers_of_somebody())


def patiently(act: Callable[[], None]) -> None:
    """Again after the wait the broker asks for; what was drawn before is sent again, not drawn anew."""
    while True:
        try:
            return act()
        except ProblemError as problem:
            if problem.status != 429:
                raise
            time.sleep(float(problem.fields.get("retry_after_seconds", 1)))


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def _wait_for(address: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if httpx.get(f"{address}/readyz", timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)


if __name__ == "__main__":
    # The crowd goes home when the broker does.
    with contextlib.suppress(ProblemError, KeyboardInterrupt):
        answer_as_crowd(sys.argv[1], sys.argv[2], int(sys.argv[3]))
