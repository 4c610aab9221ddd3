"""A pool from the terminal: its list from a file, labels into a file, and nothing left behind by a bad list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from broker.pool_scene import pool_draft
from broker.test_commands import in_process

from crowdveil.cli.answer import app as answer_app
from crowdveil.cli.study import app as study_app
from crowdveil.client import ProblemError
from crowdveil.errors import FileError, InputError


@pytest.fixture(scope="module")
def ask(sqlite_server: Any) -> dict[str, str]:
    return {"CROWDVEIL_BROKER": sqlite_server.address, "CROWDVEIL_TOKEN": sqlite_server.requester_token("pool shell")}


def test_a_pool_is_run_from_the_terminal(sqlite_server: Any, ask: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "draft.json").write_text(json.dumps(pool_draft(rules={"assignment": "listed", "batch_size": 2})))
    (tmp_path / "tasks.csv").write_text("id,text\n" + "".join(f"t{n},Premise {n}.\n" for n in range(3)))
    (tmp_path / "who.csv").write_text("worker,task\n" + "".join(f"w{n % 2},t{n // 2}\n" for n in range(6)))
    (tmp_path / "labels.json").write_text(json.dumps({"t0": "1", "t1": "0", "t2": "1"}))
    lists = ["--tasks", tmp_path / "tasks.csv", "--assignments", tmp_path / "who.csv"]
    made = in_process(study_app, ask, "create", tmp_path / "draft.json", *lists)
    assert (made["n_tasks"], len(made["tasks_root"])) == (3, 64)
    study = made["id"]
    in_process(study_app, ask, "open", study)
    for n in range(2):
        work = {"CROWDVEIL_BROKER": sqlite_server.address, "CROWDVEIL_HOME": str(tmp_path / f"home {n}")}
        in_process(answer_app, work, "sign-up", "--level", "none")
        options = ["--batches", "5", "--code", f"w{n}"]
        sent = in_process(answer_app, work, "label", study, tmp_path / "labels.json", *options)["batches"]
        assert [batch["n_reports"] for batch in sent] == [2, 1]
        assert in_process(answer_app, work, "budget")["unprotected"] == {"Does it follow?": 3}
    in_process(study_app, ask, "close", study)
    page = in_process(study_app, ask, "labels", study)
    assert {item["task"]: item["label"] for item in page["items"]} == {"t0": "1", "t1": "0", "t2": "1"}
    output = tmp_path / "labels.csv"
    in_process(study_app, ask, "labels", study, "-o", output)
    assert output.read_text().splitlines()[0] == "task,label,probability,low,high,n_reports"
    with pytest.raises(InputError, match=r"labels\.csv"):
        in_process(study_app, ask, "labels", study, "-o", output)


@pytest.mark.parametrize(
    ("tasks", "error", "sentence"),
    [
        ("id,text\na,x\na,y\n", FileError, "row 3, column 'id'"),
        ("name,text\na,x\n", FileError, "unknown column 'name'"),
        ("id,text\n" + "".join(f"{n},x\n" for n in range(100_001)), FileError, "at most 100,000 tasks"),
        ("id,text,gold\na,x,maybe\n", ProblemError, "task 1: the known truth"),
    ],
    ids=["id twice", "wrong column", "100 001 rows", "wrong gold"],
)
def test_a_bad_list_leaves_no_draft(
    ask: dict[str, str], tmp_path: Path, tasks: str, error: type[Exception], sentence: str
) -> None:
    before = in_process(study_app, ask, "list")["studies"]
    (tmp_path / "draft.json").write_text(json.dumps(pool_draft()))
    (tmp_path / "tasks.csv").write_text(tasks)
    with pytest.raises(error, match=sentence):
        in_process(study_app, ask, "create", tmp_path / "draft.json", "--tasks", tmp_path / "tasks.csv")
    assert in_process(study_app, ask, "list")["studies"] == before
