"""Estimates files, their warm starts, the cache of large files, and frames of other libraries."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from disk import room_for
from inference.crowds import choice_crowd, number_crowd, protected

from crowdveil import Answers, Choices, FileError, Reports, Scale
from crowdveil.files import cache
from crowdveil.files.cache import cache_of, read_reports_cached
from crowdveil.files.estimates import read_start, start_beside, write_estimates, write_start, write_workers
from crowdveil.files.frames import answers_from, reports_from
from crowdveil.files.reports import write_reports
from crowdveil.files.write import write_table
from crowdveil.inference import DawidSkene, Mean, method


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_choices_are_written_with_a_column_per_option(tmp_path: Path) -> None:
    rows = [("ada", "q,1", "yes"), ("bob", "q,1", "yes")]
    answers = Answers.from_rows(rows, Choices(("no", "yes")))
    with_silence = Answers(
        answers.worker, answers.question, answers.answer, answers.workers, ["q,1", "q2"], answers.domain
    )
    estimate = DawidSkene().fit(Reports.unprotected(with_silence))
    write_estimates(tmp_path / "e.csv", estimate)
    first, second = rows_of(tmp_path / "e.csv")
    assert list(first) == ["question", "value", "confidence", "low", "high", "p:no", "p:yes"]
    assert (first["question"], first["value"]) == ("q,1", "yes")
    assert float(first["p:no"]) + float(first["p:yes"]) == pytest.approx(1, abs=1e-5)
    assert (second["question"], *(second[name] for name in list(second)[1:])) == ("q2", "", "", "", "", "", "")


def test_numbers_have_no_columns_of_options(tmp_path: Path) -> None:
    estimate = Mean().fit(Reports.unprotected(Answers.from_rows([("a", "q", 1), ("b", "q", 2)], Scale(0, 4))))
    write_estimates(tmp_path / "e.parquet", estimate)
    table = pq.read_table(tmp_path / "e.parquet")
    assert table.column_names == ["question", "value", "confidence", "low", "high"]
    assert table["value"].to_pylist() == [1.5]
    assert b"mean" in table.schema.metadata[b"crowdveil-provenance"]


def test_skills_are_written_with_their_intervals(tmp_path: Path) -> None:
    estimate = DawidSkene().fit(Reports.unprotected(choice_crowd(1)[0]))
    assert estimate.skills is not None
    write_workers(tmp_path / "w.csv", estimate.skills)
    rows = rows_of(tmp_path / "w.csv")
    assert len(rows) == 40
    assert all(float(row["low"]) <= float(row["skill"]) <= float(row["high"]) for row in rows)


def test_a_start_survives_the_file(tmp_path: Path) -> None:
    answers, _ = choice_crowd(2, n_questions=600)
    named = Answers(answers.worker, answers.question, answers.answer, [f"w{n}" for n in range(40)], answers.questions, answers.domain)  # fmt: skip  # noqa: E501
    reports = Reports.unprotected(named)
    cold = DawidSkene().fit(reports)
    write_start(start_beside(tmp_path / "e.csv"), cold)
    warm = DawidSkene().fit(reports, read_start(tmp_path / "e.csv"))
    assert warm.iterations < cold.iterations / 2
    assert warm.value.tolist() == cold.value.tolist()


def test_a_missing_or_foreign_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no e\.csv\.start\.npz"):
        read_start(tmp_path / "e.csv")
    start_beside(tmp_path / "e.csv").write_bytes(b"not a start")
    with pytest.raises(FileError, match="not the start of an estimate"):
        read_start(tmp_path / "e.csv")


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Reports]:
    """A file of reports that counts as large."""
    monkeypatch.setattr(cache, "WORTHWHILE", 100)
    answers, _ = choice_crowd(3)
    write_reports(tmp_path / "r.csv", protected(answers, 1.0, 1))
    return tmp_path / "r.csv", protected(answers, 1.0, 1)


def same(first: Reports, second: Reports) -> bool:
    names = ("worker", "question", "report", "channel")
    return (
        all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names)
        and first.workers.tolist() == second.workers.tolist()
        and first.questions.tolist() == second.questions.tolist()
        and first.channels == second.channels
        and first.domain == second.domain
    )


def test_the_second_reading_comes_from_the_cache(large: tuple[Path, Reports], monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = large
    first = read_reports_cached(path)
    assert cache_of(path).is_file()
    monkeypatch.setattr(cache, "read_reports", _must_not_be_called)
    assert same(read_reports_cached(path), first)


def _must_not_be_called(*_: Any) -> Any:
    raise AssertionError("the file was read again")


def test_a_changed_source_refuses_the_cache(large: tuple[Path, Reports]) -> None:
    path, _ = large
    first = read_reports_cached(path)
    known = path.stat()
    text = path.read_text(encoding="utf-8")
    old = text.splitlines()[1]
    kind = "option 0" if "option 0" not in old else "option 1"
    changed = ",".join([*old.split(",")[:2], kind, "0"])
    path.write_text(text.replace(old, changed, 1), encoding="utf-8")
    # Same length, and the clock put back: the content itself gives it away.
    os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))
    second = read_reports_cached(path)
    assert second.report[0] != first.report[0]


def test_another_domain_or_other_channels_refuse_the_cache(large: tuple[Path, Reports]) -> None:
    path, _ = large
    read_reports_cached(path)
    beside = path.with_name("r.csv.channels.json")
    beside.write_text(beside.read_text(encoding="utf-8").replace('"bits": 32', '"bits": 64'), encoding="utf-8")
    with pytest.raises(Exception, match="channel"):
        read_reports_cached(path)


def test_the_cache_can_be_switched_off_and_small_files_have_none(large: tuple[Path, Reports], tmp_path: Path) -> None:
    path, _ = large
    read_reports_cached(path, cache=False)
    assert not cache_of(path).exists()
    small = tmp_path / "small.csv"
    small.write_text("worker,task,label\na,q,x\nb,q,y\n", encoding="utf-8")
    assert len(read_reports_cached(small)) == 2
    assert not cache_of(small).exists()


def test_a_damaged_cache_is_ignored(large: tuple[Path, Reports]) -> None:
    path, _ = large
    first = read_reports_cached(path)
    cache_of(path).write_bytes(b"ARROW1\0\0 damaged")
    assert same(read_reports_cached(path), first)


def test_a_disk_without_room_for_the_cache_leaves_nothing_beside_the_file(large: tuple[Path, Reports]) -> None:
    path, _ = large
    beside = sorted(path.parent.iterdir())
    with room_for(100):
        read = read_reports_cached(path)
    assert same(read, read_reports_cached(path, cache=False))
    assert sorted(path.parent.iterdir()) == beside


def test_only_what_a_killed_process_left_is_removed(large: tuple[Path, Reports]) -> None:
    path, _ = large
    names = (".r.csv.codes.0123456789ab.tmp", ".r.csv.codes.tmp", ".r.csv.codes.busy.tmp", ".other.csv.codes.tmp")
    killed, older, busy, foreign = (path.with_name(name) for name in names)
    for each in (killed, older, busy, foreign):
        each.write_bytes(b"half")
    for each in (killed, older, foreign):
        os.utime(each, (0, 0))
    read_reports_cached(path)
    assert [each.exists() for each in (killed, older, busy, foreign)] == [False, False, True, True]
    assert cache_of(path).is_file()


def test_noisy_numbers_and_mixed_channels_are_cached_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "WORTHWHILE", 10)
    answers, _ = number_crowd(4, n_questions=20)
    loud, quiet = protected(answers, 4.0, 1), protected(answers, 1.0, 2)
    half = np.arange(len(loud)) % 2
    mixed = Reports(
        loud.worker, loud.question, np.where(half, loud.report, quiet.report), half, loud.workers, loud.questions,
        (*quiet.channels, *loud.channels), loud.domain,
    )  # fmt: skip
    write_reports(tmp_path / "m.parquet", mixed)
    first = read_reports_cached(tmp_path / "m.parquet")
    assert cache_of(tmp_path / "m.parquet").is_file()
    assert same(read_reports_cached(tmp_path / "m.parquet"), first)


FRAME = {"worker": [1, 2, 1], "task": ["a", "a", "b, c"], "label": [0.5, 1, 1]}


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame], ids=["arrow", "pandas", "polars"])
def test_frames_of_every_library_are_read_and_ids_keep_their_type(make: Any) -> None:
    answers = answers_from(make(FRAME))
    assert answers.workers.tolist() == [1, 2]
    assert answers.questions.tolist() == ["a", "b, c"]
    assert answers.domain == Choices(("0.5", "1"))
    assert answers.answer.tolist() == [0, 1, 1]
    assert reports_from(make(FRAME), domain=Scale(0, 1, "0.5")).domain == Scale(0, 1, "0.5")


@pytest.mark.parametrize(
    ("workers", "row"), [([0, 5, None], 3), (["", "ada", "bob"], 1), (["ada", "bob", None], 3)], ids=str
)
def test_an_empty_id_in_a_frame_is_refused_by_its_row(workers: list[Any], row: int) -> None:
    frame = pa.table(FRAME | {"worker": workers})
    with pytest.raises(FileError, match=f"row {row}, column 'worker': every row must name its worker"):
        answers_from(frame)


def coded(worker: list[str | None]) -> Any:
    return pa.table(FRAME | {"worker": pa.DictionaryArray.from_arrays([0, 1, 0], worker)})


@pytest.mark.parametrize(
    ("frame", "match"),
    [
        (coded(["ada", "ada"]), "row 2.* has answered this question in an earlier row"),
        (coded(["ada", None]), "row 2, column 'worker': every row must name its worker"),
        (pa.table(FRAME | {"worker": [[1], [2], [3]]}), "column 'worker': an id must be a text or a number"),
        (pa.table(FRAME | {"label": [[1], [2], [3]]}), "column 'label': a cell must be a text or a number"),
        (pa.table(FRAME | {"label": [b"a", b"\xff", b"b"]}), "column 'label': a cell must be a text or a number"),
    ],
    ids=["repeated", "null", "lists as ids", "lists", "bytes"],
)
def test_columns_that_hide_ids_or_are_no_texts_are_refused(frame: Any, match: str) -> None:
    with pytest.raises(FileError, match=match):
        answers_from(frame)


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["x", "y"])], ids=["categorical", "enum"])
def test_words_that_polars_keeps_by_codes_are_read(kind: Any) -> None:
    frame = pl.DataFrame({"worker": [1, 2], "task": ["x", "y"], "label": ["x", "y"]})
    read = answers_from(frame.with_columns(pl.col("task", "label").cast(kind)))
    assert (read.questions.tolist(), read.domain) == (["x", "y"], Choices(("x", "y")))


@pytest.mark.parametrize("option", ["two\nlines", "a\rb", "a,b"], ids=repr)
def test_an_option_with_a_line_break_is_a_header_that_can_be_read(tmp_path: Path, option: str) -> None:
    answers = Answers.from_rows([("w", "q", option)], Choices((option, "c")))
    write_estimates(tmp_path / "e.csv", method("majority").fit(Reports.unprotected(answers)))
    assert rows_of(tmp_path / "e.csv")[0]["value"] == option


def test_a_table_that_cannot_be_written_is_no_file_with_a_header_only(tmp_path: Path) -> None:
    with pytest.raises(pa.ArrowInvalid):
        write_table(tmp_path / "t.csv", {"lists": pa.array([[1, 2], [3]])})


def test_frames_of_reports_need_their_channels() -> None:
    reports = protected(choice_crowd(5, n_questions=10)[0], 1.0, 1)
    texts = [reports.domain.options[code] for code in reports.report]
    frame = pd.DataFrame({"worker": reports.worker, "question": reports.question, "report": texts})
    with pytest.raises(FileError, match="needs its channels"):
        reports_from(frame)
    read = reports_from(frame, reports.channels, reports.domain)
    assert read.report.tolist() == reports.report.tolist()


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(FileError, match="data must be a frame of pandas or polars"):
        reports_from(3)
    with pytest.raises(FileError, match="no rows"):
        reports_from(
            pa.table(
                {
                    "worker": pa.array([], pa.string()),
                    "task": pa.array([], pa.string()),
                    "label": pa.array([], pa.string()),
                }
            )
        )
    with pytest.raises(FileError, match="'question/task' is missing"):
        reports_from(pa.table({"worker": ["a"], "label": ["x"]}))
