"""Running the device's modules under Node, and the vectors they share with Python."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DEVICE = ROOT / "src" / "crowdveil" / "device"


def node(script: Path, given: object) -> Any:
    """What the script prints as JSON for this input."""
    program = shutil.which("node")
    assert program, "the device tests need Node; install the Debian package nodejs"
    done = subprocess.run([program, str(script)], input=json.dumps(given), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def vectors(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((ROOT / "tests" / "vectors" / name).read_text(encoding="utf-8"))
    return rows
