"""What every test relies on: this checkout's package and helpers, and the same Hypothesis examples everywhere."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# HYPOTHESIS_PROFILE=explore looks for new counterexamples; a test run must not depend on luck.
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

_HERE = Path(__file__).parent
for _folder in (_HERE, _HERE.parent / "src"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

# Processes that tests start must find the package too.
_paths = [str(_HERE.parent / "src"), os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _paths))

# Started in the background of a script, tests and all that they start would not hear Ctrl-C, which some of them press.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files marked slow come first: started last, one of them would keep a single processor busy while others wait."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
