"""Ctrl-C ends a command with one line, also where libraries are being loaded that would make something else of it.

An exception raised amid imports may be lost in somebody's callback, or be taken for a failed import.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOPPED = 130


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """While a command is loaded: nothing has to be tidied up yet, so the process ends where it stands."""

    def stop(*_: object) -> None:
        os.write(2, b"crowdveil: stopped\n")
        os._exit(STOPPED)

    with _hearing(stop):
        yield


@contextmanager
def stopping_in_time() -> Iterator[None]:
    """While a command runs: whatever fails after Ctrl-C has not failed, it was stopped."""
    came = []

    def stop(*_: object) -> None:
        came.append(True)
        raise KeyboardInterrupt

    with _hearing(stop):
        try:
            yield
        except Exception as error:
            if came:
                raise KeyboardInterrupt from error
            raise


@contextmanager
def _hearing(stop: Callable[..., None]) -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    if before in (signal.SIG_IGN, None):
        # A command in the background ignores it; None: somebody decides about it who does not speak Python.
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
