"""On a full disk a command says so in one sentence and leaves nothing of what it had begun: no file and no folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.run import crowdveil
from disk import room_for

from crowdveil import FileError
from crowdveil.broker.bootstrap import BrokerEnvironment
from crowdveil.cli._common import whole_files
from crowdveil.cli._spark import _temporary_output, _whole_folders
from crowdveil.files.folders import folder_for

ANSWERS = "worker,question,answer\n" + "".join(f"w{n % 7},q{n // 7},{'yn'[n % 2]}\n" for n in range(70))
COMMANDS = {
    "simulate": ("simulate", "--preset", "sun", "--seed", "1", "-o", "new/crowd"),
    "simulate, a file": ("simulate", "--preset", "sun", "--seed", "1", "-o", "crowd.csv"),
    "reproduce": ("reproduce", "loki-examples", "--quick", "--seed", "1", "-o", "new/results"),
    "perturb": ("perturb", "a.csv", "-o", "r.csv", "--mechanism", "randomized-response", "--epsilon", "1"),
    "infer": ("infer", "a.csv", "-o", "e.csv", "--method", "one-coin", "--workers-out", "w.csv"),
}


@pytest.mark.parametrize("what", COMMANDS)
def test_nothing_is_left_of_a_command_without_room(tmp_path: Path, what: str) -> None:
    (tmp_path / "a.csv").write_text(ANSWERS)
    with room_for(100):
        done = crowdveil(*COMMANDS[what], cwd=tmp_path)
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert said.startswith("crowdveil: ")
    assert "File too large; make room" in said
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_a_broker_without_room_for_its_secret_begins_nowhere(tmp_path: Path) -> None:
    with room_for(10), pytest.raises(OSError, match="File too large"):
        BrokerEnvironment(tmp_path / "new" / "data").enter()
    assert list(tmp_path.iterdir()) == []


def test_of_several_files_none_is_placed_if_one_cannot_be(tmp_path: Path) -> None:
    first, second = tmp_path / "channels.json", tmp_path / "reports.csv"

    def written() -> None:
        with whole_files(first, second, force=False) as (one, other):
            one.write_text("mine")
            other.write_text("mine")
            second.write_text("the other's")

    with pytest.raises(FileError, match=r"reports.csv was made by somebody else meanwhile"):
        written()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("reports.csv", "the other's")]


def test_a_folder_that_holds_something_stays(tmp_path: Path) -> None:
    def failed() -> None:
        with folder_for(tmp_path / "old" / "new"):
            (tmp_path / "old" / "kept").touch()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failed()
    assert [path.name for path in (tmp_path / "old").iterdir()] == ["kept"]


def test_folders_of_a_job_take_their_places_together_or_not_at_all(tmp_path: Path) -> None:
    estimates, start = tmp_path / "e.parquet", tmp_path / "e.parquet.start"

    def job(*, fails: bool) -> None:
        with _whole_folders(estimates, start, None):
            for each in (estimates, start):
                _temporary_output(each).mkdir()
            if fails:
                raise RuntimeError

    with pytest.raises(RuntimeError):
        job(fails=True)
    assert list(tmp_path.iterdir()) == []
    job(fails=False)
    assert sorted(tmp_path.iterdir()) == [estimates, start]
