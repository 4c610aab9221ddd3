"""Ctrl-C is one line and status 130 from the first import on; so names of the package wait for what they stand for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

import crowdveil
from crowdveil._signals import stopping_in_time


def test_ctrl_c_amid_the_imports_is_one_line() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "crowdveil", "mechanisms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        loaded = next(line for line in running.stderr if "numpy" in line)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert loaded.startswith("import time:")
    said = [line for line in err.splitlines() if not line.startswith("import time:")]
    assert (running.returncode, out, said) == (130, "", ["crowdveil: stopped"])


def test_ctrl_c_that_a_library_made_an_error_of_is_still_one() -> None:
    def half_loaded() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("partially initialized module") from None

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), stopping_in_time():
        half_loaded()
    with pytest.raises(ImportError), stopping_in_time():
        raise ImportError
    assert signal.getsignal(signal.SIGINT) is before


def test_a_command_in_the_background_goes_on_ignoring_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stopping_in_time():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_package_has_the_names_it_promises_and_no_others() -> None:
    assert {*crowdveil.__all__, "answers", "__version__"} <= set(dir(crowdveil))
    assert all(getattr(crowdveil, name) is not None for name in dir(crowdveil))
    assert crowdveil.reports.Reports is crowdveil.Reports
    with pytest.raises(AttributeError, match="module 'crowdveil' has no attribute 'Answer'"):
        _ = crowdveil.Answer
