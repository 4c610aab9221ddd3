"""What a terminal shows of long work: a real pseudo-terminal, read from its other side."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import TextIO

import numpy as np
import pytest
from cli.run import crowdveil
from pyarrow.csv import read_csv
from pyarrow.parquet import write_table
from serving import Quiet, serving

from crowdveil import FileError
from crowdveil.cli._progress import UPDATES_A_SECOND, working
from crowdveil.files import read_reports
from crowdveil.progress import Step, progress_listener, report_progress


@pytest.fixture(autouse=True)
def ordinary_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def on_a_terminal(work: Callable[[TextIO], None]) -> str:
    """All that a terminal received while the work was done."""
    ours, theirs = pty.openpty()
    received: list[bytes] = []

    def listen() -> None:
        # Reading fails when the other side is closed.
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 4096):
                received.append(piece)

    listening = Thread(target=listen)
    listening.start()
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        work(terminal)
    listening.join()
    os.close(ours)
    return b"".join(received).decode()


def shown(*arguments: object) -> str:
    def run(terminal: TextIO) -> None:
        done = crowdveil(*arguments, terminal=terminal)
        assert done.returncode == 0
        assert done.stdout

    return on_a_terminal(run)


class _Exporting(Quiet):
    """A broker that has one export."""

    def do_GET(self) -> None:
        content = b"{}" if self.path.endswith("/channels") else b"worker,question,report,channel\n" * 100_000
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def exporting() -> Iterator[str]:
    with serving(_Exporting) as address:
        yield address


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    crowd = ("--options", "no,yes", "--workers", 30, "--questions", 20, "--seed", 1)
    assert crowdveil("simulate", "-o", tmp_path / "answers.csv", *crowd).returncode == 0
    return tmp_path / "answers.csv"


@pytest.fixture
def spends(tmp_path: Path) -> Path:
    rows = [f'{worker},s,randomized-response,"{{""epsilon"": 1}}",3' for worker in "abc"]
    path = tmp_path / "spends.csv"
    path.write_text("\n".join(["worker,study,mechanism,parameters,count", *rows]) + "\n")
    return path


def test_every_long_command_shows_how_far_it_is(tmp_path: Path, answers: Path, spends: Path, exporting: str) -> None:
    protected = ("--mechanism", "randomized-response", "--epsilon", 2, "--options", "no,yes")
    study = ("--options", "no,yes", "--epsilon", 1, "--workers", 40, "--questions", 10, "--effort", 0.01)
    crowd = ("--options", "no,yes", "--workers", 9, "--questions", 9)
    export = ("study", "export", "0" * 32, "--address", exporting, "--token", "t")
    told: dict[str, tuple[tuple[object, ...], tuple[str, ...]]] = {
        "simulate": (("-o", tmp_path / "crowd.csv", *crowd), (r"9 of 9 rows written",)),
        "perturb": (
            (answers, "-o", tmp_path / "reports.csv", *protected),
            (r"(\d+\.\d) of \1 MB read", r"(\d+) of \1 reports drawn", r"(\d+) of \1 rows written"),
        ),
        "infer": (
            (tmp_path / "reports.csv", "-o", tmp_path / "e.csv", "--method", "dawid-skene"),
            (r"\d+ of at most 500 iterations, change \S+ \(ends at 1e-08\)", r"20 of 20 rows written"),
        ),
        "audit": (("gaussian", "--samples", 1000), (r"9 of 9 batches of samples drawn",)),
        "plan": (study, (r"\d+ of at most \d+ studies simulated",)),
        "account": ((spends,), (r"3 of 3 workers added up",)),
        "study": ((*export[1:], "-o", tmp_path / "export.csv"), (r"3.1 of 3.1 MB received",)),
    }
    for command, (arguments, steps) in told.items():
        text = shown(command, *arguments)
        for step in steps:
            assert re.search(step, text), (command, step, text)
        # The line is taken away again, and the cursor given back.
        assert text.endswith("\x1b[2K"), (command, text)
        assert text.count("\x1b[?25l") == text.count("\x1b[?25h") > 0, command


def test_programs_that_read_along_are_not_disturbed(tmp_path: Path, answers: Path) -> None:
    assert shown("infer", answers, "-o", tmp_path / "e.csv", "--json") == ""
    assert crowdveil("infer", answers, "-o", tmp_path / "f.csv").stderr == ""


def test_a_terminal_gets_a_few_steps_a_second_however_many_are_told() -> None:
    seconds = 0.6

    def work(terminal: TextIO) -> None:
        with contextlib.redirect_stderr(terminal), working("counting", quiet=False):
            number, end = 0, time.monotonic() + seconds
            while time.monotonic() < end:
                number += 1
                report_progress("numbers", number, 10**9)

    numbers = {int(found.replace(",", "")) for found in re.findall(r"([\d,]+) of 1,000,000,000", on_a_terminal(work))}
    assert 2 <= len(numbers) <= seconds * UPDATES_A_SECOND + 1


def test_a_file_is_told_to_its_end_and_iterations_with_what_is_left_of_the_way(answers: Path) -> None:
    from crowdveil.inference import OneCoin

    steps: list[Step] = []
    with progress_listener(steps.append):
        estimate = OneCoin().fit(read_reports(answers))
    read, *iterations = steps
    assert (read.what, read.done) == ("MB read", read.of)
    assert [step.done for step in iterations] == list(range(1, estimate.iterations + 1))
    assert iterations[0].rest is None
    rests = [step.rest for step in iterations[1:] if step.rest is not None]
    assert estimate.converged
    assert rests[-1] <= OneCoin().tol < min(rests[:-1])


def test_a_parquet_file_is_told_as_it_is_read(answers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = read_csv(answers)
    write_table(table.slice(0, 0), tmp_path / "none.parquet")
    write_table(table, tmp_path / "answers.parquet", row_group_size=90)
    monkeypatch.setattr("crowdveil.files.table._SLICE", 60)
    steps: list[Step] = []
    with progress_listener(steps.append):
        reports = read_reports(tmp_path / "answers.parquet")
        with pytest.raises(FileError, match="no rows"):
            read_reports(tmp_path / "none.parquet")
    assert [(step.done, step.of) for step in steps] == [(60, 192), (120, 192), (180, 192), (192, 192)]
    assert str(steps[-1]) == "192 of 192 rows read"
    assert sorted(reports.workers) == sorted(read_reports(answers).workers)
    np.testing.assert_array_equal(reports.worker, read_reports(answers).worker)
