"""What is loaded when: starting is fast because nothing heavy is imported before it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import crowdveil

HEAVY = ("numba", "pandas", "polars", "pyarrow", "scipy")
MEASURE = "; import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
HELP = (
    "import sys; sys.argv = ['crowdveil', {words}]\n"
    "from crowdveil.__main__ import main\n"
    "try: main()\n"
    "except SystemExit: pass\n"
    "import json; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
)


def modules_after(code: str, **environment: str) -> tuple[set[str], str]:
    """The modules that are loaded after this code ran in a process of its own, and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    return set(json.loads(done.stderr.splitlines()[-1])), done.stdout


@pytest.mark.parametrize("name", ["crowdveil", "crowdveil.client", "crowdveil.cli.answer", "crowdveil.accounting"])
def test_importing_loads_nothing_heavy(name: str) -> None:
    loaded, _ = modules_after(f"import {name}{MEASURE}")
    assert loaded.isdisjoint(HEAVY)


def test_the_package_alone_loads_not_even_numpy() -> None:
    loaded, _ = modules_after(f"import crowdveil{MEASURE}")
    assert "numpy" not in loaded


def test_the_help_lists_every_command_without_loading_one() -> None:
    loaded, shown = modules_after(HELP.format(words="'--help'"))
    assert loaded.isdisjoint((*HEAVY, "numpy", "httpx"))
    assert "perturb        Randomise answers: the file that comes out is all that..." in shown
    assert not {name for name in loaded if name.startswith("crowdveil.cli.") and "._" not in name}


def test_completing_a_command_loads_none() -> None:
    environment = {"_CROWDVEIL_COMPLETE": "complete_bash", "COMP_WORDS": "crowdveil in", "COMP_CWORD": "1"}
    loaded, shown = modules_after(HELP.format(words=""), **environment)
    assert shown.split() == ["infer"]
    assert loaded.isdisjoint((*HEAVY, "numpy"))


@pytest.mark.parametrize("command", ["infer", "perturb", "answer"])
def test_completing_a_flag_loads_nothing_heavy(command: str) -> None:
    words = {"COMP_WORDS": f"crowdveil {command} --he", "COMP_CWORD": "2"}
    loaded, shown = modules_after(HELP.format(words=""), _CROWDVEIL_COMPLETE="complete_bash", **words)
    assert shown.split() == ["--help"]
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize("name", crowdveil.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(crowdveil, name) is not None
    assert name in dir(crowdveil)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'crowdveil' has no attribute 'Ebcc'"):
        _ = crowdveil.Ebcc  # type: ignore[attr-defined]
