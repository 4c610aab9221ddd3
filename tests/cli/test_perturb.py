"""`crowdveil perturb` on good files and on every kind of bad one."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from cli.run import crowdveil, crowdveil_json

from crowdveil import Choices
from crowdveil.files import read_reports
from crowdveil.mechanisms import TwoLayer

GOOD = "worker,question,answer\nada,q1,yes\nbob,q1,no\nbob,q2,yes\n"
FLAGS = ("--mechanism", "randomized-response", "--epsilon", "1")


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.csv"
    path.write_text(GOOD)
    return path


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_reports_come_out_with_their_channels(answers: Path, extension: str) -> None:
    output = answers.with_name(f"reports.{extension}")
    result = crowdveil_json("perturb", answers, "-o", output, *FLAGS)
    reports = read_reports(output)
    assert result["n_reports"] == len(reports) == 3
    assert reports.channels[0].guarantee.epsilon <= 1
    assert result["guarantee"]["requested_epsilon"] == 1


def test_with_participation_every_pair_reports(answers: Path) -> None:
    questions = answers.with_name("questions.csv")
    questions.write_text("task\nq1\nq2\nq3\n")
    output = answers.with_name("reports.csv")
    crowdveil_json("perturb", answers, "-o", output, *FLAGS, "--protect-participation", "--questions", questions)
    assert len(read_reports(output)) == 2 * 3


def test_a_seed_makes_it_reproducible_and_without_one_it_is_not(answers: Path) -> None:
    answers.write_text("worker,question,answer\n" + "".join(f"w{i},q,{'yes' if i % 2 else 'no'}\n" for i in range(400)))
    texts = []
    for number, seed in enumerate((["--seed", "7"], ["--seed", "7"], [], [])):
        output = answers.with_name(f"{number}.csv")
        crowdveil_json("perturb", answers, "-o", output, *FLAGS, *seed)
        texts.append(output.read_text())
    assert texts[0] == texts[1]
    assert texts[2] != texts[3]


def test_what_the_file_tells_beside_its_reports_is_said(answers: Path) -> None:
    """Options, workers and questions that were read off the answers are not randomised."""
    workers, questions = answers.with_name("workers.csv"), answers.with_name("questions.csv")
    workers.write_text("worker\nada\nbob\neve\n")
    questions.write_text("question\nq1\nq2\n")
    everybody = ["--workers", workers, "--questions", questions]

    def warned(*flags: object) -> list[str]:
        mechanism = ["--mechanism", "randomized-response", "--epsilon", "1", "--force"]
        found: list[str] = crowdveil_json("perturb", answers, "-o", answers.with_name("r.csv"), *mechanism, *flags)[
            "warnings"
        ]
        return found

    assert [line.split(":")[0].split(" ")[1] for line in warned()] == ["options"]
    assert warned("--options", "no,yes") == []
    assert ["workers and questions" in line for line in warned("--options", "no,yes", "--protect-participation")] == [
        True
    ]
    assert warned("--options", "no,yes", "--protect-participation", *everybody) == []
    assert ["seed" in line for line in warned("--options", "no,yes", "--seed", "7")] == [True]


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_reports_that_share_a_secret_never_claim_the_epsilon_of_one(answers: Path, extension: str) -> None:
    """What the worker with 20 answers really has stands in the file and in what infer says of it."""
    answers.write_text("worker,question,answer\n" + "".join(f"w1,q{i},{'yes' if i % 3 else 'no'}\n" for i in range(20)))
    output = answers.with_name(f"reports.{extension}")
    flags = ["--mechanism", "two-layer", "--param", "low=0", "--param", "high=0.8", "--options", "no,yes"]
    said = crowdveil_json("perturb", answers, "-o", output, *flags)["guarantee"]
    (channel,) = read_reports(output).channels
    estimates = answers.with_name("estimates.csv")
    (read,) = crowdveil_json("infer", output, "-o", estimates, "--method", "majority")["guarantees"]
    real = TwoLayer(low=0, high=0.8).guarantee(Choices(("no", "yes")), n_answers=20).epsilon
    assert said["epsilon"] == channel.guarantee.epsilon == read["epsilon"] == real > math.log(20)
    assert read["research_only"]
    assert "20 answers" in read["words"]


def test_nothing_is_overwritten_without_force(answers: Path) -> None:
    output = answers.with_name("reports.csv")
    output.write_text("mine")
    done = crowdveil("perturb", answers, "-o", output, *FLAGS)
    assert done.returncode == 2
    assert output.read_text() == "mine"
    assert crowdveil("perturb", answers, "-o", output, *FLAGS, "--force").returncode == 0


BAD = {
    "missing column": (b"worker,question\na,b\n", [], "column 'answer/label' is missing"),
    "option": (b"worker,question,answer\na,b,no\na,c,maybe\n", ["--options", "no,yes"], "row 3"),
    "level": (b"worker,question,answer\na,b,1\na,c,9\n", ["--scale", "1:5"], "row 3"),
    "off the grid": (b"worker,question,answer\na,b,1.5\n", ["--scale", "1:5"], "row 2"),
    "duplicate": (b"worker,question,answer\na,b,1\na,b,2\n", [], "row 3"),
    "empty file": (b"", [], "is empty"),
    "only a header": (b"worker,question,answer\n", [], "no rows"),
    "nan": (b"worker,question,answer\na,b,1\na,c,NaN\n", [], "row 3"),
    "nan on a scale": (b"worker,question,answer\na,b,nan\n", ["--scale", "1:5"], "row 2"),
    "not utf-8": (b"worker,question,answer\na,b,\xff\xfe\n", [], "row 2"),
    "not utf-8 header": (b"w\xffrker,question,answer\na,b,1\n", [], "row 1"),
    "ragged": (b"worker,question,answer\na,b,1,3\n", [], "row 2"),
    "no worker": (b"worker,question,answer\n,b,1\n", [], "row 2"),
    "same column twice": (b"worker,task,question,answer\na,b,c,1\n", [], "mean the same"),
    "step 0": (GOOD.encode(), ["--scale", "1:5:0"], "step"),
    "uneven step": (GOOD.encode(), ["--scale", "1:5:3"], "divide"),
    "falling scale": (GOOD.encode(), ["--scale", "5:1"], "rise"),
    "both domains": (GOOD.encode(), ["--scale", "1:5", "--options", "a,b"], "either"),
    "repeated option": (GOOD.encode(), ["--options", "yes,yes"], "twice"),
    "unknown parameter": (GOOD.encode(), ["--param", "colour=red"], "colour"),
    "too many rows": (GOOD.encode(), ["--protect-participation", "--max-rows", "3"], "--max-rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing_behind(tmp_path: Path, case: str) -> None:
    content, flags, expected = BAD[case]
    (tmp_path / "answers.csv").write_bytes(content)
    done = crowdveil("perturb", "answers.csv", "-o", "reports.csv", *FLAGS, *flags, cwd=tmp_path)
    assert done.returncode == 2
    assert expected in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["answers.csv"]


@pytest.mark.parametrize("epsilon", ["-1", "0", "inf", "nan"])
def test_a_bad_epsilon_is_refused(answers: Path, epsilon: str) -> None:
    done = crowdveil("perturb", answers, "-o", answers.with_name("r.csv"), *FLAGS[:2], "--epsilon", epsilon)
    assert done.returncode == 2
    assert "epsilon must be a positive finite number" in done.stderr


def test_each_worker_has_the_level_of_the_file(answers: Path) -> None:
    workers = answers.with_name("workers.csv")
    workers.write_text("worker,epsilon,mechanism\nada,0.5,\nbob,,none\neve,,\n")
    output = answers.with_name("reports.parquet")
    flags = ["--workers", workers, "--options", "no,yes"]
    result = crowdveil_json("perturb", answers, "-o", output, *FLAGS, *flags)
    reports = read_reports(output)
    epsilon = {
        str(reports.workers[worker]): reports.channels[channel].guarantee.epsilon
        for worker, channel in zip(reports.worker, reports.channel, strict=True)
    }
    assert epsilon["ada"] == pytest.approx(0.5)
    assert epsilon["ada"] <= 0.5
    assert epsilon["bob"] == math.inf
    assert {(each["mechanism"], each["n_workers"]) for each in result["groups"]} == {
        ("randomized-response", 1),
        ("none", 1),
    }
    assert result["guarantee"]["epsilon"] == "inf"
    assert any("which ε a worker chose is visible" in warning for warning in result["warnings"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worker,epsilon\nada,1\n", "worker 'bob' has answers but is not in workers.csv"),
        ("worker,epsilon\nada,1\nbob,2\nada,3\n", "row 4, column 'worker': worker 'ada' stands in an earlier row"),
        ('worker,epsilon\nada,1\nbob,"0,5"\n', "row 3, column 'epsilon': epsilon must be a number; got '0,5'"),
        ("worker,epsilon\nada,1\nbob,-1\n", "worker 'bob': epsilon must be"),
        ("worker,mechanism\nada,oue\nbob,\n", "worker 'ada': "),
    ],
)
def test_a_bad_level_is_refused_with_its_row_and_nothing_is_written(answers: Path, text: str, message: str) -> None:
    workers, output = answers.with_name("workers.csv"), answers.with_name("reports.parquet")
    workers.write_text(text)
    outcome = crowdveil("perturb", answers, "-o", output, *FLAGS, "--workers", workers, "--options", "no,yes")
    assert outcome.returncode == 2
    assert message in outcome.stderr
    assert not output.exists()
