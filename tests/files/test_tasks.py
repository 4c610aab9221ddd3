"""Task lists: three kinds of files read the same, and a bad row is named."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowdveil.errors import FileError
from crowdveil.files import read_assignments, read_tasks

ROWS = [
    {"id": "a", "text": "One, two\nthree", "gold": "1"},
    {"id": "7", "text": "Ünïcode", "text_b": "more"},
]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_csv_json_lines_and_parquet_read_the_same(tmp_path: Path) -> None:
    text = 'id,text,text_b,gold\na,"One, two\nthree",,1\n7,Ünïcode,more,\n'
    table = pa.Table.from_pylist(
        ROWS, schema=pa.schema([(name, pa.string()) for name in ("id", "text", "text_b", "gold")])
    )
    pq.write_table(table, tmp_path / "tasks.parquet")
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    for path in (
        write(tmp_path / "tasks.csv", text),
        write(tmp_path / "bom.csv", b"\xef\xbb\xbf" + text.encode()),
        write(tmp_path / "tasks.jsonl", lines),
        tmp_path / "tasks.parquet",
    ):
        assert read_tasks(path) == ROWS


def test_columns_may_be_called_as_in_other_files(tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.csv", "task,text,truth\n1,x,yes\n")
    assert read_tasks(path) == [{"id": "1", "text": "x", "gold": "yes"}]


BAD = {
    "no column": ("id,gold\na,1\n", "row 2: the column 'text' is missing"),
    "unknown column": ("id,text,colour\na,x,red\n", "row 2: unknown column 'colour'"),
    "column twice": ("id,text,text\na,x,y\n", "row 1: two columns have the same name"),
    "id twice": ("id,text\na,x\nb,y\na,z\n", "row 4, column 'id': id 'a' stands in row 2 already"),
    "no id": ("id,text\n,x\n", "row 2, column 'id'"),
    "no text": ("id,text\na,  \n", "row 2, column 'text': every task needs a text"),
    "too few cells": ("id,text\na\n", "row 2: a row must have 2 cells"),
    "too many cells": ("id,text\na,x,y\n", "row 2: a row must have 2 cells"),
    "line break counted": ('id,text\na,"x\ny"\na,z\n', "row 4, column 'id': id 'a' stands in row 2"),
    "control character": ("id,text\na,x\x01\n", "row 2, column 'text': text must have no control"),
    "long text": ("id,text\na," + "x" * 5001 + "\n", "row 2, column 'text': text has at most 5,000"),
    "no rows": ("id,text\n", "the list has no tasks"),
    "empty": ("", "the file is empty"),
    "open quote": ('id,text\na,"x\n', "not CSV"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_list_is_refused_with_its_row(tmp_path: Path, name: str) -> None:
    text, sentence = BAD[name]
    with pytest.raises(FileError) as refused:
        read_tasks(write(tmp_path / "tasks.csv", text))
    assert sentence in str(refused.value)
    assert str(refused.value).startswith("tasks.csv")


def test_a_list_of_100_001_tasks_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.csv", "id,text\n" + "".join(f"{number},x\n" for number in range(100_001)))
    with pytest.raises(FileError, match=r"row 100002: a pool has at most 100,000 tasks"):
        read_tasks(path)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("tasks.jsonl", '{"id": "a", "text": "x"}\n[]\n', "row 2: every line must be a JSON object"),
        ("tasks.jsonl", '{"id": "a", "text": ["x"]}\n', "row 1, column 'text': must be text"),
        ("tasks.parquet", "no", "not Parquet"),
        ("tasks.csv", b"id,text\na,\xff\n", "UTF-8"),
        ("tasks.txt", "", "extension must be"),
    ],
)
def test_other_files_are_refused_in_one_sentence(
    tmp_path: Path, name: str, content: str | bytes, sentence: str
) -> None:
    with pytest.raises(FileError, match=sentence):
        read_tasks(write(tmp_path / name, content))


def test_a_listed_assignment_names_workers_and_tasks_of_the_list(tmp_path: Path) -> None:
    path = write(tmp_path / "who.csv", "worker,task\nada,a\nbob,a\nada,7\n")
    assert read_assignments(path, ROWS) == [
        {"worker": "ada", "task": "a"},
        {"worker": "bob", "task": "a"},
        {"worker": "ada", "task": "7"},
    ]
    for text, sentence in (
        ("worker,task\nada,z\n", "row 2, column 'task': the list has no task 'z'"),
        ("worker,task\nada,a\nada,a\n", "row 3: worker 'ada' has task 'a' in an earlier row"),
        ("worker\nada\n", "row 2: the column 'task' is missing"),
    ):
        with pytest.raises(FileError) as refused:
            read_assignments(write(tmp_path / "who.csv", text), ROWS)
        assert sentence in str(refused.value)
