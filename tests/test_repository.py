"""The repository keeps its promises: locked installs, a complete wheel, documented parts, verbs that exist."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from crowdveil import cli
from crowdveil.inference import METHODS
from crowdveil.mechanisms import MECHANISMS

ROOT = Path(__file__).resolve().parents[1]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"^([a-z0-9][a-z0-9.-]*)(?:\[.*\])?==(\S+)", re.MULTILINE)
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
# Split, so that this file does not name what it forbids.
REGISTRIES = ["pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "yarnpkg" + ".com"]


def tracked_files(*under: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", *under], cwd=ROOT, capture_output=True, check=True, text=True)
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def text_of(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):", text_of(ROOT / "Makefile"), re.MULTILINE))


def pins(lock: Path) -> set[tuple[str, str]]:
    return set(PIN.findall(text_of(lock)))


def undocumented(kind: str, names: list[str]) -> list[str]:
    return [name for name in names if not (ROOT / "docs" / "reference" / kind / f"{name}.md").is_file()]


def test_no_file_names_a_package_registry() -> None:
    found = [(path.name, host) for path in tracked_files() for host in REGISTRIES if host in text_of(path)]
    assert found == []


def test_no_file_names_a_place_on_the_machine_that_built_it() -> None:
    found = [path.name for path in tracked_files() if str(ROOT) in text_of(path)]
    assert found == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_pin_of_a_lock_carries_hashes_and_nothing_else(lock: Path) -> None:
    entries = re.split(r"\n(?=\S)", text_of(lock).strip())
    assert all("==" in entry and "--hash=sha256:" in entry for entry in entries)
    assert not re.search(r"^\s*(-[a-z]|--(?!hash))", text_of(lock), re.MULTILINE)


def test_tests_run_on_the_versions_that_users_run() -> None:
    assert pins(ROOT / "requirements" / "run.txt") <= pins(ROOT / "requirements" / "dev.txt")


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + extras["broker"] + extras["plot"] + extras["dev"]
    locked = {name for name, _ in pins(ROOT / "requirements" / "dev.txt")}
    assert {re.split(r"[\[<>=]", each)[0].lower() for each in wanted} <= locked


def test_npm_lock_has_checksums_and_no_addresses() -> None:
    lock = text_of(ROOT / "package-lock.json")
    assert '"integrity"' in lock
    assert '"resolved"' not in lock


def test_wheel_ships_every_tracked_file_of_the_package(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    made = subprocess.run(build, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    (wheel,) = tmp_path.glob("crowdveil-*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    source = {path.relative_to(ROOT / "src").as_posix() for path in tracked_files("src/crowdveil")}
    assert "crowdveil/__init__.py" in source
    assert source - shipped == set()


def test_readme_offers_two_commands_that_exist() -> None:
    readme = text_of(ROOT / "README.md")
    assert {"make run", "make test"} <= set(re.findall(r"make [a-z]+", readme))
    assert {"run", "test"} <= make_targets()


def test_every_verb_that_a_document_names_exists() -> None:
    documents = [path for path in tracked_files() if path.suffix == ".md"]
    named = {verb for path in documents for verb in re.findall(r"`make ([a-z0-9-]+)", text_of(path))}
    assert named - make_targets() == set()


def test_every_command_that_a_document_shows_exists() -> None:
    code = [span for path in tracked_files() if path.suffix == ".md" for span in CODE.findall(text_of(path))]
    shown = {name for span in code for name in re.findall(r"^\W*crowdveil ([a-z-]+)", span, re.MULTILINE)}
    assert len(shown) > 5
    assert shown - set(cli.command_names()) == set()


def test_every_path_that_a_document_names_exists() -> None:
    documents = [path for path in tracked_files() if path.suffix == ".md"]
    named = {
        (path.name, place)
        for path in documents
        for place in re.findall(r"`((?:src|tests|tools|docs|requirements)/[\w./-]+)`", text_of(path))
    }
    assert len(named) > 10
    assert sorted(pair for pair in named if not (ROOT / pair[1]).exists() and "NAME" not in pair[1]) == []


def test_every_command_has_a_page() -> None:
    assert undocumented("commands", cli.command_names()) == []


def test_every_mechanism_has_a_page() -> None:
    assert undocumented("mechanisms", list(MECHANISMS)) == []


def test_every_method_has_a_page() -> None:
    assert undocumented("methods", list(METHODS)) == []


def test_every_page_of_the_reference_is_about_something_that_exists() -> None:
    commands = cli.command_names()
    mechanisms = list(MECHANISMS)
    methods = list(METHODS)
    known = {"commands": commands, "mechanisms": mechanisms, "methods": methods}
    pages = [path for kind in known for path in (ROOT / "docs" / "reference" / kind).glob("*.md")]
    stray = [path.name for path in pages if path.stem not in [*known[path.parent.name], "index"]]
    assert stray == []


def test_no_source_file_has_grown_past_reading() -> None:
    sources = [path for path in tracked_files("src") if path.suffix in {".py", ".js"}]
    assert [path.name for path in sources if len(text_of(path).splitlines()) > 400] == []


def test_changelog_has_a_heading_per_release_and_privacy_first() -> None:
    headings = re.findall(r"^##+ (.+)$", text_of(ROOT / "CHANGELOG.md"), re.MULTILINE)
    assert re.match(r"\d+\.\d+\.\d+", headings[0])
    assert headings[1:4] == ["Privacy", "Features", "Known limits"]


def test_a_name_that_packages_of_the_library_export_means_one_thing() -> None:
    meanings: dict[str, list[object]] = {}
    for table in (ROOT / "src/crowdveil").rglob("__init__.py"):
        tree = ast.parse(table.read_text(encoding="utf-8"))
        exported = [name for node in tree.body if isinstance(node, ast.Assign) for name in _exported(node)]
        parts = table.parent.relative_to(ROOT / "src").parts
        for name in exported if "broker" not in parts else ():
            meanings.setdefault(name, []).append(getattr(import_module(".".join(parts)), name))
    assert len(meanings) > 100
    assert [name for name, objects in meanings.items() if any(each is not objects[0] for each in objects)] == []


def test_the_library_never_names_flags_of_the_command_line() -> None:
    """Whoever calls a function has no flags; the command line says in its own layer which flag is meant."""
    above = {"cli", "broker", "client", "papers", "bench"}
    named = []
    for path in tracked_files("src/crowdveil"):
        if path.suffix == ".py" and path.relative_to(ROOT / "src/crowdveil").parts[0] not in above:
            raised = [node for node in ast.walk(ast.parse(text_of(path))) if isinstance(node, ast.Call)]
            texts = [part for call in raised for part in ast.walk(call) if isinstance(part, ast.Constant)]
            named += [(path.name, text.value) for text in texts if re.search(r"(?:^|\s)--[a-z]", str(text.value))]
    assert named == []


def _exported(node: ast.Assign) -> list[str]:
    is_all = any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    return list(ast.literal_eval(node.value)) if is_all and isinstance(node.value, ast.List | ast.Tuple) else []
