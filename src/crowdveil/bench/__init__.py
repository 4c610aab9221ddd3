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
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def rows(
    wanted: list[str] | None = None, *, quick: bool = False, only: list[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Measure case after case and hand each row out as soon as it is known; `only` names parts of a topic."""
    for topic in wanted or topics():
        if topic not in topics():
            raise InputError(f"the topic must be one of {', '.join(topics())}; got {topic!r}")
        module = import_module(f"{__name__}.{topic}")
        if only:
            yield from _select_parts(module.parts(quick) if hasattr(module, "parts") else {}, only, topic)
        else:
            yield from module.cases(quick)


def _select_parts(parts: dict[str, Any], only: list[str], topic: str) -> Iterator[dict[str, Any]]:
    for name in only:
        if name not in parts:
            allowed = f"one of {', '.join(parts)}" if parts else "left out"
            raise InputError(f"--only must be {allowed} for {topic}; got {name!r}")
        yield from parts[name]()
