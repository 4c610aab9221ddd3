"""Tables as people have them: each works, or is refused in one sentence that names the row and the cure.

None is silently wrong and none ends in an error of another library. A case that works states the values it must give.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import uuid
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from crowdveil import Choices, CrowdveilError, Majority, Scale, read_answers, read_reports
from crowdveil.files.frames import answers_from

ROWS = [("a", "q1", "yes"), ("b", "q1", "yes"), ("c", "q1", "no"), ("a", "q2", "no")]
VALUES = {"q1": "yes", "q2": "no"}
WORKERS, QUESTIONS, LABELS = ([row[column] for row in ROWS] for column in range(3))
LONG: dict[str, Any] = {"worker": WORKERS, "question": QUESTIONS, "answer": LABELS}
WIDE = {"user": ["a", "b", "c"], "q1": ["yes", "yes", "no"], "q2": ["no", None, None]}


def csv(
    *rows: tuple[str, ...], separator: str = ",", header: tuple[str, ...] = ("worker", "question", "answer")
) -> str:
    return "".join(separator.join(cells) + "\n" for cells in (header, *rows))


PLAIN = csv(*ROWS)


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(LONG | columns)


class Relation:
    """What a relation of DuckDB can do, as far as we ask."""

    def fetch_arrow_table(self) -> pa.Table:
        return pa.table(LONG)


class Dataset:
    """What a dataset of Hugging Face can do, as far as we ask."""

    def with_format(self, kind: str) -> Dataset:
        assert kind == "arrow"
        return self

    def __getitem__(self, rows: slice) -> pa.Table:
        return pa.table(LONG)[rows]


def arrow_file() -> bytes:
    sink = io.BytesIO()
    feather.write_feather(pa.table(LONG), sink, compression="uncompressed")
    return sink.getvalue()


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(LONG), sink)
    return sink.getvalue()


def json_lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


RECORDS = [{"worker": worker, "task": question, "label": label} for worker, question, label in ROWS]
INTEGERS = [1, 1, 0, 0]

WORKING_FILES: dict[str, tuple[str, str | bytes, dict[str, Any], dict[Any, Any]]] = {
    "plain": ("a.csv", PLAIN, {}, VALUES),
    "byte order mark": ("a.csv", "\ufeff" + PLAIN, {}, VALUES),
    "carriage returns": ("a.csv", PLAIN.replace("\n", "\r\n"), {}, VALUES),
    "semicolons": ("a.csv", PLAIN.replace(",", ";"), {}, VALUES),
    "semicolons and decimal commas": (
        "a.csv",
        csv(("a", "q1", "1,5"), ("b", "q1", "1,5"), ("c", "q1", "2"), separator=";"),
        {},
        {"q1": "1,5"},
    ),
    "tabs and a comma in the header": (
        "a.tsv",
        csv(*ROWS, separator="\t", header=("worker", "question", "answer, as said")),
        {"answer": "answer, as said"},
        VALUES,
    ),
    "tabs": ("a.tsv", PLAIN.replace(",", "\t"), {}, VALUES),
    "gzip": ("a.csv.gz", gzip.compress(PLAIN.encode(), mtime=0), {}, VALUES),
    "Zstandard": ("a.csv.zst", pa.compress(PLAIN.encode(), codec="zstd", asbytes=True), {}, VALUES),
    "bzip2": ("a.csv.bz2", bz2.compress(PLAIN.encode()), {}, VALUES),
    "packed under another name": ("a.csv", gzip.compress(PLAIN.encode(), mtime=0), {}, VALUES),
    "JSON Lines": ("a.jsonl", json_lines(RECORDS), {}, VALUES),
    "packed JSON Lines": ("a.jsonl.gz", gzip.compress(json_lines(RECORDS).encode(), mtime=0), {}, VALUES),
    "Arrow": ("a.arrow", arrow_file(), {}, VALUES),
    "Parquet": ("a.parquet", parquet(), {}, VALUES),
    "other column names": (
        "a.csv",
        csv(*ROWS, header=("User", "Item", "Choice")),
        {"worker": "User", "question": "Item", "answer": "Choice"},
        VALUES,
    ),
    "more columns and an index": (
        "a.csv",
        csv(
            *((str(n), *row, "2026-01-01") for n, row in enumerate(ROWS)), header=("", "worker", "task", "label", "at")
        ),
        {},
        VALUES,
    ),
    "white space joined": ("a.csv", PLAIN.replace("b,q1,yes", "b,q1,yes "), {"normalize": True}, VALUES),
    "case joined": ("a.csv", PLAIN.replace("b,q1,yes", "b,q1,YES"), {"normalize": True}, {"q1": "YES", "q2": "no"}),
    "Unicode forms joined": (
        "a.csv",
        csv(("a", "q", "café"), ("b", "q", "cafe\u0301"), ("c", "q", "thé")),
        {"normalize": True},
        {"q": "café"},
    ),
    "spellings joined to named options": (
        "a.csv",
        PLAIN.replace("b,q1,yes", "b,q1, Yes"),
        {"normalize": True, "domain": Choices(("no", "yes"))},
        VALUES,
    ),
    "NA among the options": (
        "a.csv",
        csv(("a", "q", "NA"), ("b", "q", "NA"), ("c", "q", "DE")),
        {"domain": Choices(("NA", "DE"))},
        {"q": "NA"},
    ),
    "blank cells": ("a.csv", PLAIN + "d,q1,  \ne,q2,\n", {}, VALUES),
    "line breaks in cells": ("a.csv", csv(("a", '"q\n1"', "yes")), {}, {"q\n1": "yes"}),
    "case that is meant": (
        "a.csv",
        csv(("a", "q", "A"), ("b", "q", "A"), ("c", "q", "a")),
        {"domain": Choices(("A", "a"))},
        {"q": "A"},
    ),
}


@pytest.mark.parametrize(("name", "content", "how", "values"), WORKING_FILES.values(), ids=WORKING_FILES)
def test_files_that_work(tmp_path: Path, name: str, content: str | bytes, how: dict[str, Any], values: Any) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert Majority().fit_predict(read_reports(tmp_path / name, **how)) == values


WORKING_FRAMES: dict[str, tuple[Callable[[], Any], dict[str, Any], dict[Any, Any]]] = {
    "pandas": (lambda: frame(), {}, VALUES),
    "polars": (lambda: pl.DataFrame(LONG), {}, VALUES),
    "lazy polars": (lambda: pl.LazyFrame(LONG), {}, VALUES),
    "an Arrow table": (lambda: pa.table(LONG), {}, VALUES),
    "an Arrow batch": (lambda: pa.record_batch(LONG), {}, VALUES),
    "an Arrow reader": (lambda: pa.table(LONG).to_reader(), {}, VALUES),
    "a relation": (Relation, {}, VALUES),
    "a dataset": (Dataset, {}, VALUES),
    "lists": (lambda: LONG, {}, VALUES),
    "records": (lambda: RECORDS, {}, VALUES),
    "column names": (
        lambda: frame().set_axis(["who", "what", "said"], axis=1),
        {"worker": "who", "question": "what", "answer": "said"},
        VALUES,
    ),
    "an index": (lambda: frame().set_index(["worker", "question"]), {}, VALUES),
    "another index": (lambda: frame().set_index(pd.Index([7, 7, 7, 7])), {}, VALUES),
    "a wide frame": (lambda: pd.DataFrame(WIDE), {"worker": "user", "question": ["q1", "q2"]}, VALUES),
    "a wide polars frame": (lambda: pl.DataFrame(WIDE), {"worker": "user", "question": ["q1", "q2"]}, VALUES),
    "a column per worker": (
        lambda: {"question": ["q1", "q2"], "a": ["yes", "no"], "b": ["yes", None], "c": ["no", None]},
        {"worker": ["a", "b", "c"]},
        VALUES,
    ),
    "a wide frame of numbers": (
        lambda: pd.DataFrame({"worker": [1, 2], 10: [3, 3], 11: [4.0, np.nan]}),
        {"question": [10, 11]},
        {10: 3.0, 11: 4.0},
    ),
    "integer labels": (lambda: frame(answer=INTEGERS), {}, {"q1": 1, "q2": 0}),
    "boolean labels": (lambda: frame(answer=[True, True, False, False]), {}, {"q1": True, "q2": False}),
    "labels with missing ones": (lambda: frame(answer=[1, 1, None, 0]), {}, {"q1": 1.0, "q2": 0.0}),
    "nullable integers": (lambda: frame(answer=pd.array([1, 1, None, 0], "Int64")), {}, {"q1": 1, "q2": 0}),
    "NaN in polars": (
        lambda: pl.DataFrame(LONG | {"answer": [1.5, 1.5, float("nan"), 0.5]}),
        {},
        {"q1": 1.5, "q2": 0.5},
    ),
    "categories": (lambda: frame(answer=pd.Categorical(LABELS, ["yes", "maybe", "no"])), {}, VALUES),
    "integer ids": (lambda: frame(question=[1, 1, 1, 2]), {}, {1: "yes", 2: "no"}),
    "dates as ids": (lambda: frame(question=[date(2026, 1, 1)] * 3 + [date(2026, 1, 2)]), {}, None),
    "decimals": (lambda: pa.table(LONG | {"answer": [Decimal("1.5"), Decimal("1.5"), Decimal("2.5"), None]}), {}, None),
    "a scale": (lambda: frame(answer=[3, 4, 5, 1]), {"domain": Scale(1, 5)}, None),
}


@pytest.mark.parametrize(("make", "how", "values"), WORKING_FRAMES.values(), ids=WORKING_FRAMES)
def test_frames_that_work(make: Callable[[], Any], how: dict[str, Any], values: Any) -> None:
    predicted = Majority().fit_predict(make(), **how)
    assert predicted
    if values is not None:
        assert predicted == values
        assert list(map(type, predicted.values())) == list(map(type, values.values()))


REFUSED_FILES: dict[str, tuple[str, str | bytes, str]] = {
    "trailing space": (
        "a.csv",
        PLAIN.replace("b,q1,yes", "b,q1,yes "),
        "row 3, column 'answer': the options 'yes' and 'yes ' differ only in white space; correct one, normalize",
    ),
    "case": ("a.csv", PLAIN.replace("b,q1,yes", "b,q1,Yes"), "the options 'Yes' and 'yes' differ only in case"),
    "Unicode form": ("a.csv", csv(("a", "q", "café"), ("b", "q", "cafe\u0301")), "differ only in Unicode form"),
    "an invisible space": ("a.csv", csv(("a", "q", "no"), ("b", "q", "no\u200b")), "differ only in white space"),
    "a number written twice": (
        "a.csv",
        csv(("a", "q", "1"), ("b", "q", "1.0")),
        "row 3, column 'answer': the options '1' and '1.0' differ only in the way the number is written",
    ),
    "NA": (
        "a.csv",
        PLAIN + "d,q2,NA\n",
        "row 6, column 'answer': the answer 'NA' may be missing or an option; leave the",
    ),
    "nan": ("a.csv", PLAIN + "d,q2,nan\n", "row 6, column 'answer': the answer 'nan' may be missing or an option"),
    "None": ("a.csv", PLAIN + "d,q2,None\n", "row 6, column 'answer': the answer 'None' may be missing or an option"),
    "null": ("a.csv", PLAIN + "d,q2,null\n", "row 6, column 'answer': the answer 'null' may be missing or an option"),
    "an empty id": ("a.csv", PLAIN + ",q2,yes\n", "row 6, column 'worker': every row must name its worker"),
    "nan as id": ("a.csv", PLAIN + "nan,q2,yes\n", "row 6, column 'worker': every row must name its worker"),
    "free text": (
        "a.csv",
        csv(*((f"w{n}", "q", f"a text {n}") for n in range(1001))),
        "1001 different texts are free text, not options; name the options",
    ),
    "answered twice": (
        "a.csv",
        PLAIN + "a,q1,no\n",
        "row 6, column 'question': this worker has answered this question",
    ),
    "a ragged row": ("a.csv", PLAIN + "d,q2\n", "row 6: the row has 2 cells but the header has 3"),
    "a ragged row with semicolons": (
        "a.csv",
        PLAIN.replace(",", ";") + "d;q2\n",
        'row 6: the row has 2 cells but the header has 3; quote cells that hold a semicolon: "a;b"',
    ),
    "UTF-16": ("a.csv", PLAIN.encode("utf-16"), "perhaps UTF-16; save the file as UTF-8"),
    "Latin-1": ("a.csv", csv(("a", "q", "café")).encode("latin-1"), "row 2: the text is not UTF-8"),
    "a workbook": ("a.xlsx", b"PK\x03\x04" + bytes(100), "this is a workbook or a ZIP archive; save the sheet"),
    "damaged gzip": ("a.csv.gz", gzip.compress(PLAIN.encode(), mtime=0)[:30], "the file is packed (gzip) and damaged"),
    "no JSON": ("a.jsonl", json_lines(RECORDS) + "{oops\n", "row 5: a line must be one JSON object; write"),
    "JSON of two types": (
        "a.jsonl",
        json_lines([RECORDS[0], RECORDS[1] | {"label": 1}]),
        "a column must have one type",
    ),
    "no Arrow": ("a.arrow", b"ARROW1" + bytes(30), "not an Arrow file"),
    "no rows": ("a.csv", "worker,question,answer\n", "has a header but no rows; give at least one row"),
    "nothing": ("a.csv", "", "is empty; it needs a header row with worker, question"),
    "another header": (
        "a.csv",
        csv(*ROWS, header=("x", "y", "z")),
        "the column 'worker' is missing; got x, y, z; rename",
    ),
}


@pytest.mark.parametrize(("name", "content", "said"), REFUSED_FILES.values(), ids=REFUSED_FILES)
def test_files_that_are_refused_in_one_sentence(tmp_path: Path, name: str, content: str | bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    check_refusal(lambda: read_answers(tmp_path / name), said)


REFUSED_FRAMES: dict[str, tuple[Callable[[], Any], str]] = {
    "trailing space": (
        lambda: frame(answer=["yes", "yes ", "no", "no"]),
        "row 2, column 'answer': the options 'yes' and",
    ),
    "categories that differ in case": (
        lambda: frame(answer=pd.Categorical(["yes", "Yes", "no", "no"])),
        "the options 'Yes' and 'yes' differ only in case",
    ),
    "mixed ids": (
        lambda: frame(worker=[1, 2, "3", 1]),
        "row 3, column 'worker': a column must have one type; '3' is str",
    ),
    "mixed labels": (
        lambda: frame(answer=["yes", 1, "no", "no"]),
        "row 2, column 'answer': a column must have one type",
    ),
    "tuples as ids": (lambda: frame(worker=[("a", 1)] * 4), "column 'worker'"),
    "large numbers": (
        lambda: frame(worker=[1, 2, 2**80, 1]),
        "row 3, column 'worker': a whole number must fit into 64",
    ),
    "identifiers of another type": (lambda: frame(worker=[uuid.UUID(int=n) for n in (1, 2, 3, 1)]), "column 'worker'"),
    "lists as labels": (
        lambda: frame(answer=[["a"], ["b"], ["a"], ["b"]]),
        "column 'answer': a cell must be a text or",
    ),
    "two columns of one name": (
        lambda: pd.DataFrame(list(zip(*LONG.values(), LABELS, strict=True)), columns=[*LONG, "answer"]),
        "two columns have the name 'answer'; rename one",
    ),
    "a missing id": (
        lambda: frame(worker=["a", None, "c", "a"]),
        "row 2, column 'worker': every row must name its worker",
    ),
    "NaN as an id": (lambda: frame(worker=[1, np.nan, 3, 1]), "row 2, column 'worker': every row must name its worker"),
    "an id that was NaN": (
        lambda: frame(worker=["a", "nan", "c", "a"]),
        "row 2, column 'worker': every row must name its",
    ),
    "a wide frame that is not said to be": (lambda: pd.DataFrame(WIDE), "question=[…] for a table with a column per"),
    "no rows": (lambda: frame().head(0), "the frame has no rows; give at least one row"),
    "a Series": (lambda: frame()["answer"], "data must be a frame of pandas or polars"),
    "a path": (lambda: "answers.csv", "or Reports; got str; read a file with read_reports(path)"),
    "an array": (lambda: np.zeros((3, 3)), "data must be a frame of pandas or polars"),
    "a dictionary of one value": (lambda: LONG | {"answer": 3}, "column 'answer': a column must be a list of values"),
    "columns of different lengths": (lambda: LONG | {"answer": ["yes"]}, "all columns must have the same length"),
    "no answer at all": (lambda: frame(answer=[None] * 4), "no row has an answer; give at least one"),
}


@pytest.mark.parametrize(("make", "said"), REFUSED_FRAMES.values(), ids=REFUSED_FRAMES)
def test_frames_that_are_refused_in_one_sentence(make: Callable[[], Any], said: str) -> None:
    check_refusal(lambda: Majority().fit(make()), said)


def check_refusal(attempt: Callable[[], object], said: str) -> None:
    with pytest.raises(CrowdveilError) as caught:
        attempt()
    sentence = str(caught.value)
    assert said in sentence
    assert "\n" not in sentence
    assert "--" not in sentence


def test_a_row_of_a_wide_frame_is_named_with_its_column() -> None:
    wide = pd.DataFrame({"user": ["a", "b", "c"], "q1": ["yes", "yes", "no"], "q2": ["no", None, "No"]})
    with pytest.raises(CrowdveilError, match="row 3, column 'q2': the options 'No' and 'no' differ only in case"):
        answers_from(wide, worker="user", question=["q1", "q2"])


def test_at_least_forty_messy_inputs_are_tried() -> None:
    assert sum(map(len, (WORKING_FILES, WORKING_FRAMES, REFUSED_FILES, REFUSED_FRAMES))) >= 90
