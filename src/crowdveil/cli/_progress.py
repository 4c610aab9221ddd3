"""What a person sees while a command works: how far it has come, on a terminal's stderr and nowhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from crowdveil.progress import Step, progress_listener

UPDATES_A_SECOND = 4
_BAR_WIDTH = 16


@contextmanager
def working(what: str, *, quiet: bool) -> Iterator[None]:
    """Show what is known of the work in here; nothing where nobody looks or a program reads (`quiet`)."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    line = _Line(what)
    console = Console(stderr=True)
    with (
        Live(get_renderable=line.render, console=console, refresh_per_second=UPDATES_A_SECOND, transient=True),
        progress_listener(line.hear),
    ):
        yield


class _Line:
    """Remembers the last step; it is drawn a few times a second, however many there are."""

    def __init__(self, what: str) -> None:
        self._what, self._begun = what, time.monotonic()
        self._spinner = Spinner("dots")
        self._step: Step | None = None

    def hear(self, step: Step) -> None:
        self._step = step

    def render(self) -> Table:
        step = self._step
        parts: list[Spinner | Text | ProgressBar] = [self._spinner, Text(self._what, no_wrap=True)]
        if step is not None and step.share is not None:
            parts.append(ProgressBar(total=1.0, completed=step.share, width=_BAR_WIDTH))
        if step is not None:
            parts.append(Text(str(step), no_wrap=True, overflow="ellipsis"))
        line = Table.grid(padding=(0, 1))
        line.add_row(*parts, Text(f"{time.monotonic() - self._begun:.0f} s", no_wrap=True))
        return line
