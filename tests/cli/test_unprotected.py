"""Where nothing is protected, no command says a word of protection (level "none", the identity channel)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli.run import crowdveil, crowdveil_json

from crowdveil.cli.answer import _tell_sent
from crowdveil.client.submission import Sent

# "not protected", "unprotected" and "protects nothing" are the truth; what is left must not promise.
_TRUE = re.compile(r"not protected|unprotected|protects nothing|no privacy|protects_participation")
_PROMISE = re.compile(r"protect|privat|randomi[sz]|noise|hide|hidden|hides|stays|never leave|ε ≤|ε 0|\b0\b +0\b")


def promises(text: str) -> list[str]:
    return _PROMISE.findall(_TRUE.sub("", text.lower()))


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.csv"
    path.write_text("worker,question,answer\nada,q1,yes\nbob,q1,no\n")
    return path


@pytest.fixture
def spends(tmp_path: Path) -> Path:
    path = tmp_path / "spends.csv"
    path.write_text('worker,study,mechanism,parameters,count\nada,weather,none,"{""options"": 2}",20\n')
    return path


@pytest.mark.parametrize("arguments", [[], ["--epsilon", "1"], ["--scale", "1:5"], ["--json"]])
def test_mechanisms_none(arguments: list[str]) -> None:
    done = crowdveil("mechanisms", "none", *arguments)
    assert done.returncode == 0
    assert "no privacy at all: the report is the answer" in done.stdout
    assert promises(done.stdout) == []


@pytest.mark.parametrize("arguments", [[], ["--seed", "1"], ["--options", "no,yes"], ["--json"]])
def test_perturb_with_none(answers: Path, tmp_path: Path, arguments: list[str]) -> None:
    done = crowdveil("perturb", answers, "-o", tmp_path / "reports.csv", "--mechanism", "none", *arguments)
    assert done.returncode == 0
    assert "inf" in done.stdout if "--json" in arguments else "not protected" in done.stdout
    assert promises(done.stdout.replace(str(tmp_path), "") + done.stderr) == []
    inferred = crowdveil("infer", tmp_path / "reports.csv", "-o", tmp_path / "estimates.csv")
    assert "not protected" in inferred.stdout
    assert promises(inferred.stdout.replace(str(tmp_path), "")) == []


def test_account_of_who_only_sent_answers_as_they_are(spends: Path) -> None:
    done = crowdveil("account", spends)
    assert done.returncode == 0
    assert "not protected: weather: none (20)" in done.stdout
    assert promises(done.stdout) == []
    assert crowdveil_json("account", spends)["unprotected"] == {"ada": {"weather: none": 20}}


def test_account_still_adds_up_what_was_protected_beside_it(spends: Path) -> None:
    protected = 'bob,weather,randomized-response,"{""epsilon"": 1, ""options"": 2}",2\n'
    spends.write_text(spends.read_text() + protected + protected.replace("bob", "ada"))
    done = crowdveil("account", spends)
    assert len(re.findall(r"^ada +(?:value|cell|vector)", done.stdout, re.MULTILINE)) == 3
    assert "not protected, and not in these numbers: weather: none (20)" in done.stdout


def test_audit_of_none() -> None:
    done = crowdveil("audit", "none", "--options", "no,yes")
    assert done.returncode == 0
    assert "not protected" in done.stdout
    assert promises(done.stdout) == []


def test_none_is_not_planned_with() -> None:
    done = crowdveil("plan", "--options", "no,yes", "--epsilon", 1, "--workers", 10, "--mechanism", "none")
    assert done.returncode == 2
    assert "protects nothing" in done.stderr


def test_answers_that_were_sent_as_they_are_are_called_that(capsys: pytest.CaptureFixture[str]) -> None:
    receipt = {"receipt": "1", "pay_cents": 20}
    _tell_sent(Sent(({"question": "ill", "report": 1},), receipt, "none", protected=False))
    unprotected = capsys.readouterr().out
    assert "not protected: your answers are sent as they are" in unprotected
    assert promises(unprotected) == []
    _tell_sent(Sent(({"question": "ill", "report": 1},), receipt, "high", protected=True))
    assert "not protected" not in capsys.readouterr().out
