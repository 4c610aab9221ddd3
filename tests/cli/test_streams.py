"""Standard input and output, pipes, and answers that are joined on request."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli.run import crowdveil

ROWS = "worker;task;label\na;q1;yes\nb;q1;yes \nc;q1;no\n"
HEADER = "question,value,confidence,low,high,p:no,p:yes\n"
PERTURB = ["perturb", "-", "-o", "-", "--mechanism", "randomized-response", "--epsilon", "4", "--options", "no,yes"]


def run(*words: str, given: bytes, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "crowdveil", *words]
    return subprocess.run(command, input=given, cwd=cwd, capture_output=True, timeout=300, check=False)


def test_estimates_go_to_standard_output_and_words_about_them_do_not(tmp_path: Path) -> None:
    done = run("infer", "-", "-o", "-", "--method", "majority", "--normalize", given=ROWS.encode(), cwd=tmp_path)
    assert done.stdout.decode().startswith(f"{HEADER}q1,yes,")
    assert b"majority: 1 questions, 3 workers, 3 reports; estimates on standard output" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_reports_travel_through_a_pipe_with_their_channels(tmp_path: Path) -> None:
    made = run(*PERTURB, "--normalize", "--seed", "1", given=ROWS.encode(), cwd=tmp_path)
    assert made.stdout.startswith(b"PAR1")
    done = run("infer", "-", "-o", "-", "--method", "majority", given=made.stdout, cwd=tmp_path)
    assert done.stdout.decode().startswith(HEADER)
    assert "ε ≤ 4 per value".encode() in done.stderr


def test_a_pipe_with_a_name_is_read(tmp_path: Path) -> None:
    done = run(
        "infer", "/dev/stdin", "-o", "-", "--method", "majority", "--normalize", given=ROWS.encode(), cwd=tmp_path
    )
    assert done.stdout.decode().startswith(HEADER)


def test_reports_without_channels_are_refused_from_a_stream_too(tmp_path: Path) -> None:
    done = run("infer", "-", "-o", "-", given=b"worker,question,report\na,q,yes\n", cwd=tmp_path)
    assert done.returncode == 2
    assert b"send Parquet, which holds them, or name the column 'answer'" in done.stderr
    assert done.stdout == b""


@pytest.mark.parametrize("words", [["infer", "a.csv"], ["perturb", "a.csv", "--mechanism", "none"]], ids=" ".join)
def test_the_result_and_json_do_not_share_standard_output(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    done = crowdveil(*words, "-o", "-", "--json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "crowdveil: standard output cannot take both the result and --json; give -o a file\n"


def test_answers_that_look_alike_are_refused_or_joined(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    done = crowdveil("infer", "a.csv", "-o", "e.csv", cwd=tmp_path)
    assert done.returncode == 2
    said = (
        "a.csv, row 3, column 'answer': the options 'yes' and 'yes ' differ only in white space; correct one, normalize"
    )
    assert said in done.stderr
    assert crowdveil("infer", "a.csv", "-o", "e.csv", "--normalize", cwd=tmp_path).returncode == 0
    assert (tmp_path / "e.csv").read_text().startswith(f"{HEADER}q1,yes,")


def test_spark_does_not_join(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    done = crowdveil("infer", "a.csv", "-o", "e.parquet", "--engine", "spark", "--normalize", cwd=tmp_path)
    assert "--normalize is for the engine local" in done.stderr
