"""Speed and memory on this machine, measured beside the peers that are installed.

Each module of this package has a function `cases(quick)` that yields rows with `case, n, ours, peer, peer_name, ratio`.
A ratio above 1 means that ours is better, unless the case says otherwise; without the peer it is None.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from crowdveil.errors import InputError


def topics() -> list[str]:
    """What can be measured: the modules of this package that have cases."""
    return sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_"))


def rows(wanted: list[str] | None = None, *, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Measure case after case and hand each row out as soon as it is known."""
    for topic in wanted or topics():
        if topic not in topics():
            raise InputError(f"the topic must be one of {', '.join(topics())}; got {topic!r}")
        yield from import_module(f"{__name__}.{topic}").cases(quick)
