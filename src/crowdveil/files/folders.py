"""Folders for what is about to be written: a failure leaves none behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def folder_for(path: Path, *, mode: int = 0o777) -> Iterator[None]:
    """The folder and what leads to it; those made here are taken away again if the work fails and they are empty."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(mode=mode, parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for each in missing:
            with suppress(OSError):
                each.rmdir()
        raise
