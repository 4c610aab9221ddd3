"""Clumsy hands: whatever is typed or read, the reply is one sentence that says what to do, and no file is half made."""

from __future__ import annotations

import errno
import gzip
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import pytest
from cli.run import crowdveil
from serving import Quiet, serving
from waiting import until

from crowdveil.cli._common import check_output, whole_file
from crowdveil.errors import FileError
from crowdveil.files import read_answers
from crowdveil.papers import REPRODUCTIONS

ROWS = "worker,question,answer\na,q1,yes\nb,q1,no\na,q2,no\n"
NOBODY = 65534
NUMBERS = "worker,question,answer\na,q1,1\nb,q1,2\na,q2,5\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "answers.csv").write_text(ROWS)
    (tmp_path / "numbers.csv").write_text(NUMBERS)
    (tmp_path / "truth.csv").write_text("question,truth\nq1,maybe\n")
    (tmp_path / "elsewhere.csv").write_text("question,truth\nzz,yes\n")
    (tmp_path / "broken.py").write_text("def report(:\n")
    (tmp_path / "leaving.py").write_text("raise SystemExit(5)\n")
    (tmp_path / "kept.csv.channels.json").write_text("{}")
    (tmp_path / "folder.csv").mkdir()
    return tmp_path


PERTURB = "perturb answers.csv -o reports.csv --mechanism randomized-response"
INFER = "infer answers.csv -o estimates.csv --method dawid-skene"
SIMULATE = "simulate --options a,b --workers 5 --questions 3 -o crowd"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (PERTURB, "needs epsilon; give --epsilon"),
        (f"{PERTURB} --epsilon 1,5", "got '1,5'; see crowdveil perturb --help"),
        (f"{PERTURB} --epsilon 1 --param epsilon=2", "epsilon is given twice: 1 and 2; leave one of them out"),
        (f"{PERTURB} --epsilon 1 --options=", "an option must not be blank"),
        (f"{PERTURB} --epsilon 1 --scale=", "a scale must be LOW:HIGH"),
        ("perturb answers.csv -o r.csv --mechanism Randomised-Response", "did you mean randomized-response?"),
        ("perturb numbers.csv -o r.csv --mechanism optimal-scale --epsilon 1", "give --scale LOW:HIGH if they are"),
        ("perturb answers.csv -o answers.csv --mechanism none --force", "answers.csv is read by this command"),
        ("perturb answers.csv -o folder.csv --mechanism none --force", "folder.csv is a folder; name a file in it"),
        ("perturb folder.csv -o r.csv --mechanism none", "folder.csv is a folder"),
        ("mechanisms matrix-factorization --epsilon 1 --param factors=2.5", "factors must be a whole number; got 2.5"),
        ("mechanisms randomized-response --options a", "a question must have two options or more; got only 'a'"),
        ("audit randomized-response --options a", "a question must have two options or more"),
        ("audit laplace --samples 0", "an audit needs at least 100 samples per input; got 0"),
        ("audit laplace --delta 0.1", "--delta is for code of yours; our mechanisms state their own δ"),
        ("audit broken:report --options a,b --epsilon 1", "cannot be imported: SyntaxError"),
        ("audit leaving:report --options a,b --epsilon 1", "cannot be imported: SystemExit: 5"),
        ("audit os:abs --options a,b --epsilon 1 --seed 1", "--param and --seed are for mechanisms of ours"),
        (f"{INFER} --param max_iter=1.5", "max_iter must be a whole number; got 1.5"),
        (
            f"{INFER} --param max_iter={'9' * 5000}",
            "must be a whole number; got '999999999999...9999999999999'",
        ),
        (
            f"{INFER} --param max_iter={'[' * 100_000}",
            "must be a whole number; got '[[[[[[[[[[[[...[[[[[",
        ),
        (f"{INFER} --param name=x", "got 'name'"),
        (f"{INFER} --param class_smoothing=NaN", "class_smoothing must be 0 or more, and below 1e100; got nan"),
        (f"{INFER} --param class_smoothing=-1", "class_smoothing must be 0 or more, and below 1e100; got -1"),
        (f"{INFER} --param max_itr=3", "did you mean max_iter?"),
        (f"{INFER} --gold truth.csv", "truth.csv, column 'truth': the truth of question 'q1' cannot be used"),
        (f"{INFER} --gold elsewhere.csv", "no gold question is among the questions"),
        (f"{INFER} --workers-out ./estimates.csv", "--output and --workers-out must be two files"),
        (f"{INFER} --resume", "are for Spark; add --engine spark"),
        (f"{SIMULATE} --param class_shares=[0.5,-0.5]", "class_shares must be numbers from 0 up"),
        ("simulate --scale 1:5 -o crowd --param shift=-1", "shift must be a standard deviation, 0 or more, of"),
        (
            "simulate --scale 1:5 -o crowd --param sigmas=[1,1e308]",
            "sigmas must be numbers from 0 up, of ordinary size",
        ),
        (f"{SIMULATE} --seed -1", "the seed of a crowd must be 0 or more; got -1"),
        ("verify-client http://[::1", "cannot be reached"),
        ("study list --token x --address broker", "must start with http:// or https://; got 'broker'"),
        ("study create none.json --token x", "none.json cannot be used: No such file or directory; check the name"),
        ("study create folder.csv --token x", "folder.csv cannot be used: Is a directory; name a file in it"),
        ("study export 1 -o answers.CSV --token x --address broker", "a broker's address must start with"),
        ("study export 1 -o kept.csv --token x --address broker", "kept.csv.channels.json exists already; choose"),
        ("backup -o b.gz --data-dir .", "is not a broker's data directory"),
        ("restore answers.csv", "answers.csv is not a backup"),
        ("serve --host 999.1.1.1", "cannot listen on 999.1.1.1:8000"),
        ("infr", "No such command 'infr'; see crowdveil --help"),
        ("perturb", "Missing argument 'answers'; see crowdveil perturb --help"),
    ],
)
def test_a_slip_is_one_sentence_that_names_it(line: str, said: str, folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    done = crowdveil(*line.split(), cwd=folder)
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == before
    assert (folder / "answers.csv").read_text() == ROWS


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (ROWS.encode() + b'c,"' + b"q" * 200_000 + b'",no\nd\n', "row 6: the row has 1 cells but the header has 3"),
        (ROWS.encode() + b'c,q1,"ye', "row 5: a quote opens in this row and never closes"),
        (b'"worker,question,answer\na,q1,yes\n', "close the quote that opens in the header"),
        (b",".join(b"c%d" % n for n in range(10**5)) + b"\n", "c18, c19 …; rename or add it"),
        (ROWS.encode("utf-16"), "perhaps UTF-16; save the file as UTF-8"),
        (gzip.compress(ROWS.encode(), mtime=0)[:40], "the file is packed (gzip) and damaged; make it anew"),
        (b"PK\x03\x04" + bytes(60), "this is a workbook or a ZIP archive; save the sheet"),
        (b"PAR1" + bytes(range(128, 256)), "this is a Parquet file; name it .parquet"),
        (b"worker,question,answer", "has a header but no rows"),
        (b"\n\n", "got an empty row"),
        (b"worker question answer\na q yes\n", "with commas between cells instead of ' '"),
        (b'worker,question,answer\n"a\nb",q,yes\n\n\nc,,no\n', "row 6, column 'question': every row must name"),
        (b'worker,question,answer\n"a\nb",q,yes\n\nc,no\n', "row 5: the row has 2 cells"),
    ],
    ids=range(13),
)
def test_a_bad_file_is_refused_at_the_line_that_an_editor_shows(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_bytes(content)
    done = crowdveil("infer", "bad.csv", "-o", "estimates.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr) < 500
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


@pytest.mark.parametrize("words", [[], ["study"], ["answer"]], ids=" ".join)
def test_whoever_asks_for_nothing_gets_help_and_not_one_long_line(words: list[str]) -> None:
    done = crowdveil(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Usage: {' '.join(['crowdveil', *words])} ")
    assert max(map(len, done.stderr.splitlines())) < 100


def test_a_start_of_another_estimate_is_neither_replaced_unasked_nor_left(folder: Path) -> None:
    start = folder / "estimates.csv.start.npz"
    assert crowdveil(*INFER.split(), cwd=folder).returncode == 0
    assert start.is_file()
    (folder / "estimates.csv").unlink()
    majority = [*INFER.split()[:-1], "majority"]
    done = crowdveil(*majority, cwd=folder)
    assert (done.returncode, "estimates.csv.start.npz exists already" in done.stderr) == (2, True)
    assert not (folder / "estimates.csv").exists()
    assert crowdveil(*majority, "--force", cwd=folder).returncode == 0
    assert not start.exists()


def test_a_figure_that_cannot_be_drawn_leaves_the_run_before_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sun-theorems.csv").write_text("an earlier run")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(type(REPRODUCTIONS["sun-theorems"]), "rows", lambda *_: [{"ours": 1.0}])
    monkeypatch.setattr(type(REPRODUCTIONS["sun-theorems"]), "draw", fail)
    done = crowdveil("reproduce", "sun-theorems", "--quick", "-o", tmp_path)
    assert done.returncode == 2
    assert "the system failed: No space left on device; make room" in done.stderr
    assert [path.read_text() for path in tmp_path.iterdir()] == ["an earlier run"]


def test_a_quote_within_a_cell_is_a_letter(tmp_path: Path) -> None:
    (tmp_path / "pipes.csv").write_text('worker,question,answer\na,5" pipe,yes\nb,5" pipe,no\nc,5" pipe,yes\n')
    done = crowdveil("infer", "pipes.csv", "-o", "estimates.csv", "--method", "majority", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '5"' in (tmp_path / "estimates.csv").read_text()


def test_a_truth_that_is_no_option_is_pointed_out(folder: Path) -> None:
    done = crowdveil("infer", "answers.csv", "-o", "e.csv", "--truth", "truth.csv", cwd=folder)
    assert "truth.csv names 'maybe', which is no option" in done.stdout


def test_a_reader_that_goes_away_is_no_failed_check(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "crowdveil", "methods"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.close()
    assert running.stderr.read() == b""
    running.stderr.close()
    assert running.wait(timeout=60) == 141


def test_stopping_leaves_no_file_behind(tmp_path: Path) -> None:
    def stopped() -> None:
        with whole_file(tmp_path / "reports.csv", force=False) as temporary:
            temporary.write_text("half of it")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_being_stopped_leaves_no_file_behind(tmp_path: Path, how: int, code: int) -> None:
    released = Event()

    class Stalling(Quiet):
        """A broker that begins to send a file, has the command stopped when half of it is there, and hangs."""

        def do_GET(self) -> None:
            whole = self.path.endswith("/channels")
            self.send_response(200)
            self.send_header("Content-Length", "2" if whole else "200000")
            self.end_headers()
            self.wfile.write(b"{}" if whole else bytes(100_000))
            if not whole:
                # Beside the channels there is a file with something in it: whoever writes it is past opening it.
                until(lambda: sum(path.stat().st_size > 2 for path in tmp_path.iterdir()) == 2)
                os.kill(os.getpid(), how)
                released.wait(60)

    with serving(Stalling) as address:
        done = crowdveil("study", "export", "0" * 32, "-o", tmp_path / "r.csv", "--address", address, "--token", "t")
        released.set()
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "crowdveil: stopped\n")
    assert list(tmp_path.iterdir()) == []


def test_of_two_commands_with_one_output_the_first_wins_whole(tmp_path: Path) -> None:
    def second() -> None:
        with whole_file(tmp_path / "reports.csv", force=False) as temporary:
            temporary.write_text("mine")
            (tmp_path / "reports.csv").write_text("the other's")

    with pytest.raises(FileError, match="made by somebody else meanwhile"):
        second()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["the other's"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_disk_is_said_so(tmp_path: Path) -> None:
    def fill() -> None:
        with whole_file(tmp_path / "reports.csv", force=False), Path("/dev/full").open("w") as disk:
            disk.write("too much")

    with pytest.raises(FileError, match=r"nothing was written to .*: No space left on device; make room"):
        fill()


def test_a_question_that_nobody_answers_stops_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    done = crowdveil("answer", "erase", "--home", tmp_path / "home")
    assert done.returncode == 130
    assert done.stderr.endswith("crowdveil: stopped\n")


def test_what_may_not_be_read_is_said_so() -> None:
    with TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        path = Path(place, "answers.csv")
        path.write_text(ROWS)
        assert len(read_answers(path)) == 3
        for closed in (path, Path(place)):
            closed.chmod(0)
            with without_rights(), pytest.raises(FileError, match="may not be read by you; change its permissions"):
                read_answers(path)
            closed.chmod(0o755)


def test_where_nothing_may_be_written_is_said_before_the_work() -> None:
    with TemporaryDirectory() as place:
        Path(place).chmod(0o555)
        with without_rights(), pytest.raises(FileError, match="may not be written to by you; change its permissions"):
            check_output(Path(place, "estimates.csv"), force=False)


@contextmanager
def without_rights() -> Iterator[None]:
    """Root may read everything, and so becomes nobody for a moment."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)
