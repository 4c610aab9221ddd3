"""Wait for what another process or thread is about to do: ask again and again, but not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(condition: Callable[[], Any], seconds: float = 60, *, explain: Callable[[], str] = str) -> Any:
    """What the condition says as soon as it is true of anything; `explain` tells what is known when it never is."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited in vain for {seconds:g} seconds {explain()}"
        time.sleep(0.05)
    return found
