"""Every command explains itself: its help has an example that it accepts, a missing extra is named with its cure."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from cli.commands import COMMANDS, accept, command_of
from cli.run import crowdveil

from crowdveil.cli import EXTRAS, command_names, read_help

PYPROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_help_shows_an_example_that_the_command_accepts(words: tuple[str, ...]) -> None:
    shown = " ".join(crowdveil(*words, "--help").stdout.split())
    example = re.search(r"Example: .*?crowdveil (.+?)(?:\)? Options:|\)? Arguments:)", shown)
    assert example, shown
    given = shlex.split(example[1])
    assert given[0] == words[0]
    accept(given)


def test_the_extras_bring_what_only_some_layers_import() -> None:
    contracts = PYPROJECT["tool"]["importlinter"]["contracts"]
    optional = {package for contract in contracts for package in contract.get("forbidden_modules", ())}
    assert optional <= {package for packages in EXTRAS.values() for package in packages}
    assert set(EXTRAS) <= set(PYPROJECT["project"]["optional-dependencies"])


@pytest.mark.parametrize(
    ("package", "command", "extra"),
    [
        ("django", ["serve"], "broker"),
        ("matplotlib", ["reproduce", "loki-examples", "-o", "results"], "plot"),
        ("pyspark", ["infer", "answers.csv", "-o", "estimates.csv", "--engine", "spark"], "spark"),
    ],
)
def test_a_missing_extra_is_one_sentence_with_its_cure(
    package: str, command: list[str], extra: str, tmp_path: Path
) -> None:
    (tmp_path / "answers.csv").write_text("worker,question,answer\na,q,yes\n")
    without = f"import sys; sys.modules[{package!r}] = None; from crowdveil.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", without, *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"pip install 'crowdveil[{extra}]'" in done.stderr


@pytest.mark.parametrize("name", command_names())
def test_the_help_that_is_read_in_the_file_is_that_of_the_command(name: str) -> None:
    assert read_help(name).split() == (command_of([name]).help or "").split()
