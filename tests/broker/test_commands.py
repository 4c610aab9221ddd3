"""The commands that people type: study, answer, backup and restore, against a running broker."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from crowdveil.cli.answer import app as answer_app
from crowdveil.cli.study import app as study_app
from crowdveil.client import ProblemError
from crowdveil.errors import DomainError

SOURCE = Path(__file__).resolve().parents[2] / "src"


def crowdveil(*arguments: object) -> Any:
    """A command that sets up Django, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "crowdveil", *map(str, arguments), "--json"],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def in_process(app: Any, environment: dict[str, str], *arguments: object) -> Any:
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"], env=environment)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return json.loads(done.stdout)


def test_a_study_is_run_from_the_terminal_and_survives_a_move(server: Any, make_draft: Any, tmp_path: Path) -> None:
    ask = {"CROWDVEIL_BROKER": server.address, "CROWDVEIL_TOKEN": server.requester_token("terminal")}
    work = {"CROWDVEIL_BROKER": server.address, "CROWDVEIL_HOME": str(tmp_path / "home")}
    (tmp_path / "draft.json").write_text(json.dumps(make_draft(minimum_n=2, quota=50)))
    study = in_process(study_app, ask, "create", tmp_path / "draft.json")["id"]
    spare = in_process(study_app, ask, "copy", study)["id"]
    assert in_process(study_app, ask, "revise", spare, tmp_path / "draft.json")["state"] == "draft"
    assert in_process(study_app, ask, "discard", spare) == {"discarded": spare}
    assert in_process(study_app, ask, "open", study)["state"] == "open"
    assert in_process(study_app, ask, "add-money", study, 500)["money"]["budget_cents"] == 100_500
    with pytest.raises(ProblemError, match="cannot be told apart"):
        in_process(study_app, ask, "quality", study)

    in_process(answer_app, work, "sign-up")
    (tmp_path / "answers.json").write_text(json.dumps({"ill": "yes", "days": 4}))
    sent = in_process(answer_app, work, "send", study, tmp_path / "answers.json")
    assert {report["question"] for report in sent["reports"]} == {"ill", "days"}
    assert in_process(answer_app, work, "budget")["epsilon"] > 1.9
    assert in_process(study_app, ask, "progress", study)["taken"] == 1
    (tmp_path / "wrong.json").write_text(json.dumps({"ill": "perhaps"}))
    other = work | {"CROWDVEIL_HOME": str(tmp_path / "other")}
    in_process(answer_app, other, "sign-up")
    with pytest.raises(DomainError, match="answer must be one of 'no', 'yes'"):
        in_process(answer_app, other, "send", study, tmp_path / "wrong.json")
    assert in_process(answer_app, other, "raise-cap", 6) == {"cap": 6.0}
    assert in_process(answer_app, other, "budget")["cap"] == 6.0
    assert in_process(answer_app, other, "erase", "--yes") == {"erased": True}
    with pytest.raises(ProblemError, match="valid token"):
        in_process(answer_app, other, "list")

    place = ["--data-dir", server.home] + (["--database", server.database] if server.database else [])
    written = crowdveil("backup", "-o", tmp_path / "all.gz", *place)
    assert written["rows"] > 10
    # It holds the signing key and what people sign in with.
    assert (tmp_path / "all.gz").stat().st_mode & 0o077 == 0
    assert (server.home / "study-keys" / study).read_bytes().hex() not in _unpacked(tmp_path / "all.gz")

    restored = crowdveil("restore", tmp_path / "all.gz", "--data-dir", tmp_path / "new")
    assert restored["rows"] == written["rows"]
    assert study in restored["closed"]
    assert (tmp_path / "new" / "signing.key").read_bytes() == (server.home / "signing.key").read_bytes()


def test_the_terminal_says_that_level_none_sends_answers_as_they_are(
    server: Any, make_draft: Any, tmp_path: Path
) -> None:
    levels = [{"name": "none", "mechanism": "none", "pay_cents": 40}, make_draft()["levels"][1]]
    requester = server.requester("plain lab")
    study = requester.create(make_draft(levels=levels))
    requester.open(study)
    environment = {"CROWDVEIL_BROKER": server.address, "CROWDVEIL_HOME": str(tmp_path / "home")}
    (tmp_path / "answers.json").write_text(json.dumps({"ill": "yes"}))

    def said(*arguments: object) -> str:
        done = CliRunner().invoke(answer_app, list(map(str, arguments)), env=environment)
        assert done.exit_code == 0, done.output
        return done.stdout

    said("sign-up", "--level", "none")
    plain = "not protected: your answers are sent as they are"
    assert f"none: 40 cents, {plain}" in said("list")
    assert f"level none: {plain}" in said("show", study)
    assert "level medium: answers are randomised" in said("show", study)
    sent = said("send", study, tmp_path / "answers.json")
    assert plain in sent
    assert "ill: your answer, as code 1 left this machine" in sent
    assert "stays on this machine" not in CliRunner().invoke(answer_app, ["--help"]).stdout
    assert "this device counts ε 0 as spent" in said("catch-up")


def _unpacked(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()
