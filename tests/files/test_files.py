"""Reports and answers survive the way through CSV and Parquet, whatever ids and options look like."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil import Answers, Choices, FileError, Reports, Scale, entropy_from
from crowdveil.channel import Channel
from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.channel.encoding import Rotate, Table
from crowdveil.files import read_answers, read_reports, read_truth, write_answers, write_reports
from crowdveil.guarantee import Guarantee
from crowdveil.mechanisms import MECHANISMS, RandomizedResponse

words = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=1, max_size=8).filter(
    lambda text: text.strip() and text.lower() != "nan"
)
extensions = pytest.mark.parametrize("extension", ["csv", "parquet"])


def rows_of(reports: Reports) -> set[tuple[object, ...]]:
    """What the table says, whatever its order and its dictionaries."""
    return {
        (str(reports.workers[worker]), str(reports.questions[question]), reports.channels[channel].outputs[report])
        for worker, question, report, channel in zip(
            reports.worker, reports.question, reports.report, reports.channel, strict=True
        )
    }


@extensions
@settings(max_examples=40, deadline=None)
@given(
    options=st.lists(words, min_size=2, max_size=4, unique=True),
    pairs=st.lists(st.tuples(words, words), min_size=1, max_size=12, unique=True),
    seed=st.integers(0, 2**32),
)
def test_reports_survive_a_file(
    tmp_path_factory: pytest.TempPathFactory,
    extension: str,
    options: list[str],
    pairs: list[tuple[str, str]],
    seed: int,
) -> None:
    domain = Choices(tuple(options))
    rows = [(worker, question, options[place % len(options)]) for place, (worker, question) in enumerate(pairs)]
    mechanism = RandomizedResponse(epsilon=1, protect_participation=True)
    reports = mechanism.randomize(Answers.from_rows(rows, domain), entropy_from(seed))
    path = tmp_path_factory.mktemp("files") / f"reports.{extension}"
    write_reports(path, reports)
    back = read_reports(path)
    assert rows_of(back) == rows_of(reports)
    assert back.channels == reports.channels
    assert back.domain == domain


@extensions
def test_mixed_channels_subsets_and_numbers_survive(tmp_path: Path, extension: str) -> None:
    domain = Choices(("1", "2", "3"))
    subset = Channel(
        domain.symbols,
        (("1", "2"), ("1", "3"), ("2", "3")),
        64,
        "prefix",
        Table(np.array([[2**63 - 2**20, 2**63 - 2**20, 2**21]] * 3, dtype=np.uint64)),
    )
    rotate = Channel(domain.symbols, domain.symbols, 32, "rotate", Rotate(2**31, 2**30))
    noise = NoiseRecord("laplace", 2.0, Guarantee("cell", 1.0, 0.5, research_only=True))
    number = np.array([0.0, 0.0, -1.25])
    ids = np.array(["a", "b"], dtype=object)
    reports = Reports(
        np.array([0, 1, 1], np.int32),
        np.array([0, 0, 1], np.int32),
        np.array([2, 1, -1], np.int32),
        np.array([0, 1, 2], np.int16),
        ids,
        ids,
        (subset, rotate, noise),
        domain,
        number,
    )
    path = tmp_path / f"r.{extension}"
    write_reports(path, reports)
    back = read_reports(path)
    assert back.report.tolist() == [2, 1, -1]
    assert back.number is not None
    assert back.number[2] == -1.25
    assert back.channels == reports.channels


@extensions
def test_answers_survive_a_file(tmp_path: Path, extension: str) -> None:
    answers = Answers.from_rows([(1, "q,1", "0.5"), (2, "q,1", None)], Scale(0, 1, "0.5"))
    write_answers(tmp_path / f"a.{extension}", answers)
    back = read_answers(tmp_path / f"a.{extension}", Scale(0, 1, "0.5"))
    assert back.answer.tolist() == [1, -1]


def test_field_names_of_the_field_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Task,worker,label\n10,1,b\n9,2,a\n")
    assert read_answers(path).domain == Choices(("a", "b"))


def test_numbers_seen_are_in_the_order_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("worker,task,answer\na,q,10\nb,q,9\n")
    assert read_answers(path).domain == Choices(("9", "10"))


def test_parquet_floats_are_spelled_as_people_would(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"worker": [1, 2], "question": [1.0, 1.0], "answer": [3.0, 2.5]}), path)
    answers = read_answers(path)
    assert answers.domain.symbols == ("2.5", "3")
    assert list(answers.questions) == ["1"]


def test_reports_without_channels_are_never_read_as_unprotected(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("worker,question,report\na,q,yes\n")
    with pytest.raises(FileError, match="no channels"):
        read_reports(path)


def test_tampered_channels_are_refused(tmp_path: Path) -> None:
    reports = RandomizedResponse(epsilon=1).randomize(
        Answers.from_rows([("a", "q", "yes")], Choices(("no", "yes"))), entropy_from(1)
    )
    path = tmp_path / "r.csv"
    write_reports(path, reports)
    beside = tmp_path / "r.csv.channels.json"
    beside.write_text(beside.read_text().replace('"bits": 32', '"bits": 64'))
    with pytest.raises(ValueError, match="changed on the way"):
        read_reports(path)


def test_answers_are_read_through_the_identity_channel(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("worker,question,answer\na,q,yes\nb,q,\n")
    reports = read_reports(path)
    assert not reports.protected
    assert len(reports) == 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("worker,question,report,channel\na,q,yes,1\n", "channel must be from 0 to 0"),
        ("worker,question,report,channel\na,q,perhaps,0\n", "row 2"),
        ("worker,question,report,channel\na,q,,0\n", "row 2"),
    ],
)
def test_reports_that_do_not_fit_their_channel_are_refused(tmp_path: Path, content: str, expected: str) -> None:
    reports = RandomizedResponse(epsilon=1).randomize(
        Answers.from_rows([("a", "q", "yes"), ("b", "q", "no")], Choices(("no", "yes"))), entropy_from(1)
    )
    path = tmp_path / "r.csv"
    write_reports(path, reports)
    path.write_text(content)
    with pytest.raises(FileError, match=expected):
        read_reports(path)


def test_truths(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("task,truth\n1,a\n2,b\n")
    assert read_truth(path) == {"1": "a", "2": "b"}
    path.write_text("task,truth\n1,a\n1,b\n")
    with pytest.raises(FileError, match="row 3"):
        read_truth(path)


def test_the_registry_is_not_empty() -> None:
    assert "randomized-response" in MECHANISMS


PLAIN = b"worker,question,answer\n1,1,yes\n2,1,no\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("answers.csv.gz", gzip.compress(PLAIN, mtime=0)),
        ("answers.csv", gzip.compress(PLAIN, mtime=0)),
        ("answers.csv.zst", pa.compress(PLAIN, codec="zstd", asbytes=True)),
        ("answers.csv.bz2", bz2.compress(PLAIN)),
        ("answers.csv", PLAIN.replace(b",", b";")),
        ("answers.tsv", PLAIN.replace(b",", b"\t")),
        ("answers.txt", PLAIN),
    ],
)
def test_packed_files_and_other_separators_are_read(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    answers = read_answers(tmp_path / name)
    assert answers.workers.tolist() == ["1", "2"]
    assert answers.domain == Choices(["no", "yes"])
    assert answers.answer.tolist() == [1, 0]
