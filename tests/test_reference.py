"""The API reference holds every public name, with a description; it is built here as `make docs` builds it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import griffe
import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "crowdveil"
# Not for import by others: the Django project, the command line, and the measuring of speed.
INTERNAL = {"broker", "cli", "bench", "engines", "device"}


def public_packages() -> list[str]:
    """Every package of the library whose `__init__.py` has `__all__`."""
    tables = [path for path in sorted(SOURCE.rglob("__init__.py")) if "__all__ =" in path.read_text(encoding="utf-8")]
    parts = [path.parent.relative_to(SOURCE.parent).parts for path in tables]
    return [".".join(each) for each in parts if INTERNAL.isdisjoint(each)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built documentation; a warning of any kind ends the build."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_packages_of_the_library_are_found() -> None:
    assert {"crowdveil", "crowdveil.inference", "crowdveil.accounting", "crowdveil.client"} <= set(public_packages())


@pytest.mark.parametrize("package", public_packages())
def test_every_public_name_stands_in_the_reference(site: Path, package: str) -> None:
    page = (site / "reference" / "python" / package.rpartition(".")[2] / "index.html").read_text(encoding="utf-8")
    anchors = set(re.findall(r'\bid="([\w.]+)"', page))
    links = set(re.findall(r'href="[^"]*#crowdveil\.[\w.]*?(\w+)"', page)) if package == "crowdveil" else set()
    names = import_module(package).__all__
    assert names
    assert [name for name in names if f"{package}.{name}" not in anchors and name not in links] == []


@pytest.fixture(scope="module")
def library() -> griffe.Module:
    """The library as its source describes it, constants and type aliases included."""
    loaded = griffe.load("crowdveil", search_paths=[ROOT / "src"], resolve_aliases=True)
    assert isinstance(loaded, griffe.Module)
    return loaded


@pytest.mark.parametrize("package", public_packages())
def test_every_public_name_has_a_docstring(library: griffe.Module, package: str) -> None:
    names = import_module(package).__all__
    objects = {name: library[f"{package}.{name}".removeprefix("crowdveil.")] for name in names}
    assert [name for name, each in objects.items() if not each.docstring or len(each.docstring.value) < 15] == []


def test_the_index_lists_every_package() -> None:
    index = (ROOT / "docs" / "reference" / "python" / "index.md").read_text(encoding="utf-8")
    assert [package for package in public_packages() if f"[`{package}`]" not in index] == []


def test_examples_are_code_and_not_quotations(site: Path) -> None:
    page = (site / "reference" / "python" / "inference" / "index.html").read_text(encoding="utf-8")
    assert "<blockquote>" not in page
    assert page.count('<span class="gp">&gt;&gt;&gt; </span>') > 50
