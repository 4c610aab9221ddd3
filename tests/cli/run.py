"""Running the command line as a user does: its exit code and what it printed.

`crowdveil` runs the entry point in this process, because starting Python again for each of hundreds of calls would
take most of the suite's time; `crowdveil_process` starts a real one.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from crowdveil.cli import main


@dataclass(frozen=True)
class Done:
    """What a finished command left behind."""

    returncode: int
    stdout: str
    stderr: str


def crowdveil(*arguments: object, cwd: Path | None = None, terminal: TextIO | None = None) -> Done:
    """Run `crowdveil …` and return what happened; with a terminal, stderr goes there."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    argv, here = sys.argv, Path.cwd()
    sys.argv = ["crowdveil", *map(str, arguments)]
    os.chdir(cwd or here)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(terminal or err):
            main()
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    finally:
        sys.argv = argv
        os.chdir(here)
    return Done(code, out.getvalue(), err.getvalue())


def crowdveil_process(*arguments: object, cwd: Path | None = None) -> Done:
    """Run `crowdveil …` in a process of its own."""
    command = [sys.executable, "-m", "crowdveil", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def crowdveil_json(*arguments: object, cwd: Path | None = None) -> Any:
    """Run `crowdveil … --json` and return the document; anything but success fails the test."""
    done = crowdveil(*arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
