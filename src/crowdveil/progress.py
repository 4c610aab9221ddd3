"""How far long work has come: whoever works tells it, whoever wants to show it listens; unheard, it costs nothing."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

Item = TypeVar("Item")
_MEGA = 1e6


@dataclass(frozen=True, slots=True)
class Step:
    """So much is `done` of what there is to do; `at_most` where the work may end sooner.

    Work that ends when it comes to rest says how far it is from that: it ends when `rest` has fallen to `tol`.
    """

    what: str
    done: float
    of: float | None = None
    at_most: bool = False
    rest: float | None = None
    tol: float | None = None

    def __str__(self) -> str:
        bound = "" if self.of is None else f" of{' at most' * self.at_most} {_format_number(self.of)}"
        rest = "" if self.rest is None else f", change {self.rest:.1e} (ends at {self.tol:.0e})"
        return f"{_format_number(self.done)}{bound} {self.what}{rest}"

    @property
    def share(self) -> float | None:
        """How much of the work is done, where that is known."""
        return None if self.at_most or not self.of else self.done / self.of


def _format_number(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.1f}"


Listener: TypeAlias = Callable[[Step], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report_progress(
    what: str,
    done: float,
    of: float | None = None,
    *,
    at_most: bool = False,
    rest: float | None = None,
    tol: float | None = None,
) -> None:
    """Tell whoever listens.

    >>> with progress_listener(print):
    ...     report_progress("iterations", 12, 100, at_most=True, rest=3e-4, tol=1e-5)
    12 of at most 100 iterations, change 3.0e-04 (ends at 1e-05)
    """
    listener = _listener.get()
    if listener is not None:
        listener(Step(what, done, of, at_most, rest, tol))


@contextmanager
def progress_listener(listener: Listener | None) -> Iterator[None]:
    """Work in here tells this listener; with None nobody, as is right for the parts of what is counted as a whole."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def count_progress(items: Sequence[Item], what: str) -> Iterator[Item]:
    """The items, telling after each how many are done.

    >>> with progress_listener(print):
    ...     total = sum(count_progress([3, 4], "numbers added"))
    1 of 2 numbers added
    2 of 2 numbers added
    """
    for number, item in enumerate(items, start=1):
        yield item
        report_progress(what, number, len(items))


class ProgressFile(io.BufferedReader):
    """A file that tells how much of it was read, to whoever listened when it was opened: Arrow reads in threads."""

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path))
        self._size, self._listener = path.stat().st_size, _listener.get()

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if self._listener is not None and data:
            self._listener(Step("MB read", self.tell() / _MEGA, self._size / _MEGA))
        return data
