"""Methods and mechanisms of other packages: found by their entry points, never in place of our own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PYPROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "tiny-crowd"
version = "1"

[project.entry-points."crowdveil.methods"]
loudest = "tiny_crowd:Loudest"
majority = "tiny_crowd:Loudest"

[project.entry-points."crowdveil.mechanisms"]
coin = "tiny_crowd:Coin"

[tool.setuptools]
py-modules = ["tiny_crowd"]
"""
MODULE = '''
from dataclasses import dataclass

from crowdveil.inference import Majority
from crowdveil.mechanisms import RandomizedResponse


@dataclass(frozen=True, kw_only=True)
class Loudest(Majority):
    """Majority under another name, with a parameter of its own."""

    name = "loudest"
    patience: int = 3


@dataclass(frozen=True)
class Coin(RandomizedResponse):
    """Randomized response under another name."""

    name = "coin"
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which a real distribution with entry points was installed."""
    source, site = tmp_path_factory.mktemp("tiny"), tmp_path_factory.mktemp("site")
    (source / "pyproject.toml").write_text(PYPROJECT)
    (source / "tiny_crowd.py").write_text(MODULE)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    install += ["--no-build-isolation", "--no-deps", "--target", str(site), str(source)]
    subprocess.run(install, check=True, capture_output=True)
    return site


def run(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(site), os.environ["PYTHONPATH"]])
    environment = os.environ | {"PYTHONPATH": paths}
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, check=False)


def test_an_installed_method_is_used_by_its_name(site: Path, tmp_path: Path) -> None:
    reports, estimates = tmp_path / "reports.csv", tmp_path / "estimates.csv"
    reports.write_text("worker,question,answer\na,q,yes\nb,q,yes\nc,q,no\n")
    infer = ("-m", "crowdveil", "infer", str(reports), "--method", "loudest", "--param", "patience=5")
    ran = run(site, *infer, "-o", str(estimates))
    assert ran.returncode == 0, ran.stderr
    assert estimates.read_text().splitlines()[1].startswith("q,yes")


def test_our_own_method_stays_under_its_name(site: Path) -> None:
    ran = run(site, "-c", "from crowdveil.inference import method; print(method('majority'))")
    assert ran.stdout == "Majority()\n"


def test_an_installed_mechanism_is_made_by_its_name(site: Path) -> None:
    ran = run(site, "-c", "from crowdveil.mechanisms import mechanism; print(mechanism('coin', epsilon=1))")
    assert ran.stdout == "Coin(epsilon=1.0, protect_participation=False)\n", ran.stderr


def test_the_broker_takes_only_mechanisms_that_devices_know(site: Path) -> None:
    program = """
from crowdveil.broker.bootstrap import BrokerEnvironment
from pathlib import Path
import tempfile
BrokerEnvironment(Path(tempfile.mkdtemp())).enter()
from crowdveil.broker.studies.channels import build_channel
from crowdveil.broker.studies.draft import Level
from crowdveil.domain import Choices
level = Level(name="low", mechanism="coin", epsilon="1", pay_cents=1)
build_channel(level, Choices(("no", "yes")), protects_participation=False)
"""
    assert "mechanism must be one of randomized-response" in run(site, "-c", program).stderr
