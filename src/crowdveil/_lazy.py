"""Names of a package that are loaded when they are first used (PEP 562), so that importing it costs next to nothing."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for True; loading typing takes a while

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def lazy_names(
    package: str, namespace: dict[str, Any], modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names live in these modules of it.

    >>> load, names = lazy_names("crowdveil", {}, {"guarantee": ["round_up"]})
    >>> load("round_up")(0.12341), names()
    ('0.1235', ['guarantee', 'round_up'])
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name in homes:
            return namespace.setdefault(name, getattr(import_module(f"{package}.{homes[name]}"), name))
        if name in modules:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def list_names() -> list[str]:
        return sorted({*namespace, *homes, *modules})

    return load, list_names
