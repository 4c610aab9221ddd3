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

# The files that take longest, the longest first. With --dist loadfile each runs in one process: started last, one of
# them would keep a single processor busy for minutes while the others wait.
LONGEST_FIRST = (
    "engines/test_spark.py",
    "statistical/test_plan_against_simulation.py",
    "engines/test_spark_failures.py",
    "plan/test_monte_carlo.py",
    "plan/test_planner.py",
    "browser/test_worker_app.py",
    "engines/test_command.py",
    "broker/test_schema.py",
    "papers/test_reproductions.py",
    "broker/test_crash.py",
    "laws/test_methods.py",
    "broker/test_story.py",
    "browser/test_console.py",
    "laws/test_channels.py",
    "broker/test_commands.py",
    "broker/test_races.py",
    "inference/test_kernels.py",
    "test_documents.py",
    "broker/test_operations.py",
    "broker/test_roles.py",
    "browser/test_newcomer.py",
    "browser/test_real_broker.py",
    "browser/test_access.py",
    "browser/test_modules.py",
    "statistical/test_intervals.py",
    "audit/test_audit.py",
    "plan/test_mix.py",
    "statistical/test_channel_methods.py",
    "plan/test_evolution.py",
    "selection/test_selection.py",
    "engines/test_notes.py",
    "device/test_ledger.py",
    "cli/test_help.py",
    "accounting/test_ledger.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {_HERE / name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))
