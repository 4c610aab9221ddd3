"""A checkpoint is there whole or not at all: its writer is killed when half of a new one is on the disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from crowdveil.engines.checkpoints import DiskNotes

WRITER = """
import sys
from pathlib import Path
from crowdveil.engines.checkpoints import DiskNotes

def half(path, data):
    with path.open("wb") as file:
        file.write(data[: len(data) // 2])
    print("half", flush=True)
    sys.stdin.read()  # until it is killed, or whoever started it is gone

notes = DiskNotes(Path(sys.argv[1]))
notes.write("note", b"one" * 1000)
Path.write_bytes = half
notes.write("note", b"two" * 1000)
"""


def test_a_writer_that_is_killed_leaves_the_last_whole_note(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    try:
        assert writer.stdout.readline() == "half\n"
    finally:
        writer.kill()
        writer.communicate()
    assert len(list(tmp_path.iterdir())) == 2, "the half is on the disk, beside the whole note"
    notes = DiskNotes(tmp_path)
    assert notes.read("note") == b"one" * 1000
    notes.write("note", b"three")
    assert DiskNotes(tmp_path).read("note") == b"three"
    assert notes.read("another") is None
