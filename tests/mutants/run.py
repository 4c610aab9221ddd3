"""Mistakes that must not survive: each is planted in a copy of the source, and the tests named beside it must go red.

`make mutants` plants them all; `python tests/mutants/run.py WORD` only those whose name holds the word. They stand in
tests/mutants: the file, the text as it stands there (exactly once), the mistake, and the tests that have to notice.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mutants import MUTANTS
from mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "src/crowdveil"


def main(words: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if all(word in mutant.name for word in words)]
    if not chosen:
        print(f"no mistake is named with {' and '.join(words)}; tests/mutants has their names")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        if (code := baseline(copy, chosen)) != 0:
            print(f"the tests must be green before anything is planted; they ended with {code}")
            return 2
        alive = [mutant for mutant in chosen if not dies(copy, mutant)]
    print(f"{len(chosen) - len(alive)} of {len(chosen)} mutants died")
    return 1 if alive else 0


def baseline(copy: Path, chosen: list[Mutant]) -> int:
    """Every test that will be asked, once, on the sound source."""
    whole = {mutant.tests for mutant in chosen if not mutant.only}
    files = {path for mutant in chosen for path in mutant.tests.split()}
    parts = {mutant.only for mutant in chosen if mutant.tests not in whole}
    # A name in the expression that picks files taken whole is their path's last part.
    names = {Path(path).name for tests in whole for path in tests.split()}
    return run(copy, " ".join(sorted(files)), " or ".join(sorted(f"({part})" for part in parts | names)))


def copied(folder: Path) -> Path:
    """The parts of the checkout that the tests need."""
    ignored = shutil.ignore_patterns("__pycache__", ".*cache", "node_modules")
    for part in ("src", "tests", "docs"):
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    for part in ("pyproject.toml", "package.json", "README.md"):
        shutil.copy(ROOT / part, folder / part)
    return folder


def dies(copy: Path, mutant: Mutant) -> bool:
    path = copy / SOURCE / mutant.file
    sound = path.read_text()
    if sound.count(mutant.text) != 1:
        print(f"LOST      {mutant.name}: its text stands {sound.count(mutant.text)} times in {mutant.file}")
        return False
    path.write_text(sound.replace(mutant.text, mutant.mistake))
    started = time.monotonic()
    code = run(copy, mutant.tests, mutant.only)
    path.write_text(sound)
    # 1 is "tests failed"; anything else means that nothing was tested.
    verdict, seconds = "died    " if code == 1 else "SURVIVED", time.monotonic() - started
    print(f"{verdict}  {mutant.name}  ({seconds:.0f} s, exit {code})", flush=True)
    return code == 1


def run(copy: Path, tests: str, only: str) -> int:
    """The exit code of pytest for these tests against the copy."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests.split()]
    command += ["-k", only] if only else []
    # A cached module of the same size and second would be taken for the mutated one.
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
