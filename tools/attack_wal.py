"""Attack a broker by its disk: spoil one frame of SQLite's write-ahead log after 160 acknowledged submissions.

Run by hand, on loopback only: `python tools/attack_wal.py`. It starts a broker of its own, ends it with SIGKILL, flips
one byte, starts it again, and prints how many submissions are gone and what the start says about them.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from crowdveil.bench._postgres import free_port
from crowdveil.bench._serving import ANSWERS, Running, wait_until_ready

N_SUBMISSIONS = 160
_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24


def start(home: str, log: Path) -> tuple[subprocess.Popen[bytes], int]:
    port = free_port()
    command = [sys.executable, "-m", "crowdveil", "serve", "--port", str(port), "--data-dir", home]
    environment = os.environ | {"CROWDVEIL_RATE_LIMIT": "0"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
    wait_until_ready(port)
    return process, port


def kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


def spoil_frame(wal: Path) -> None:
    """Flip one byte near the end of the present log; frames of an earlier one have other salts."""
    content = bytearray(wal.read_bytes())
    size = _FRAME_HEADER_BYTES + struct.unpack(">I", content[8:12])[0]
    starts = range(_HEADER_BYTES, len(content) - size + 1, size)
    frames = [start for start in starts if content[start + 8 : start + 16] == content[16:24]]
    content[frames[int(0.95 * len(frames))] + _FRAME_HEADER_BYTES + 100] ^= 1
    wal.write_bytes(content)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="crowdveil-attack-") as home:
        log, database = Path(home) / "log", Path(home) / "crowdveil.sqlite3"
        numbers = [str(number) for number in (ANSWERS, N_SUBMISSIONS, 0)]
        seeding = [sys.executable, "-m", "crowdveil.broker.ops.seed", home, "", *numbers]
        seed = json.loads(subprocess.run(seeding, check=True, capture_output=True).stdout)
        process, port = start(home, log)
        try:
            Running(process, port, seed).submit(0, N_SUBMISSIONS)
        finally:
            kill(process)
        spoil_frame(Path(f"{database}-wal"))
        process, _ = start(home, log)
        kill(process)
        with closing(sqlite3.connect(database)) as connection:
            [n_left] = connection.execute("SELECT COUNT(*) FROM intake_submission").fetchone()
        warnings = [line for line in log.read_text().splitlines() if "acknowledged" in line]
    lines = warnings or ["the start says nothing"]
    sys.stdout.write("\n  ".join([f"{N_SUBMISSIONS - n_left} of {N_SUBMISSIONS} submissions are gone", *lines]) + "\n")
    return 0 if n_left == N_SUBMISSIONS or warnings else 1


if __name__ == "__main__":
    sys.exit(main())
