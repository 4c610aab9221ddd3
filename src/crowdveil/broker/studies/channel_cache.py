"""A cache bounded by the cells of the channels it holds: bounded by entries it could grow to gigabytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")

MAX_CACHED_CELLS = 10_000_000
"""More than the four levels of the largest draft; 80 MB of weights."""


class CellCache(Generic[Value]):
    """The values used last, as many as fit; one that is larger than all the room is not remembered."""

    def __init__(self, n_cells: Callable[[Value], int], *, max_cells: int = MAX_CACHED_CELLS) -> None:
        self._n_cells, self._max_cells, self._used = n_cells, max_cells, 0
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Hashable, value: Value) -> None:
        # Small tables count, too: they have symbols and hashes.
        n_cells = self._n_cells(value) + 1000
        with self._lock:
            if key in self._values:
                self._used -= self._values.pop(key)[1]
            self._values[key] = value, n_cells
            self._used += n_cells
            while self._used > self._max_cells:
                self._used -= self._values.popitem(last=False)[1][1]
