"""Options that are read from tables: their type and order are kept, and look-alikes are never two options unasked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from crowdveil import (
    Answers,
    Choices,
    DawidSkene,
    DomainError,
    FileError,
    InputError,
    Majority,
    RandomizedResponse,
    Scale,
    SystemEntropy,
    answers_from,
    entropy_from,
    read_answers,
    read_reports,
    reports_from,
    score,
    write_answers,
    write_estimates,
    write_reports,
)
from crowdveil.files.estimates import read_start, start_beside, write_start
from crowdveil.files.options import choices_of
from crowdveil.mechanisms import MECHANISMS, mechanism

TYPED = {"int": [0, 1, 1, 0], "bool": [False, True, True, False], "float": [0.5, 1.0, 1.0, 0.5], "str": list("nyyn")}
IDS = {"worker": ["a", "b", "c", "a"], "task": ["q1", "q1", "q1", "q2"]}
extensions = pytest.mark.parametrize("extension", ["csv", "parquet"])
kinds = pytest.mark.parametrize("kind", TYPED)


def frame(labels: Any) -> pd.DataFrame:
    return pd.DataFrame(IDS | {"label": labels})


@kinds
def test_labels_keep_their_type_through_a_fit(kind: str) -> None:
    values = Majority().fit(frame(TYPED[kind])).values()
    assert values == [TYPED[kind][1], TYPED[kind][0]]
    assert {type(value).__name__ for value in values} == {kind}


def test_accuracy_against_integer_truths_is_not_zero() -> None:
    table = frame(TYPED["int"])
    estimate = Majority().fit(table)
    truth = pd.Series({"q1": 1, "q2": 0})
    assert (pd.Series(estimate.values(), estimate.questions) == truth).all()
    assert score(estimate, truth)["accuracy"] == 1


@kinds
@extensions
def test_labels_keep_their_type_through_files_of_reports(tmp_path: Path, kind: str, extension: str) -> None:
    reports = RandomizedResponse(epsilon=1).randomize(answers_from(frame(TYPED[kind])), entropy_from(1))
    write_reports(tmp_path / f"r.{extension}", reports)
    back = read_reports(tmp_path / f"r.{extension}").domain
    assert isinstance(back, Choices)
    assert [(type(label), label) for label in back.labels] == [
        (type(label), label) for label in sorted(set(TYPED[kind]))
    ]


@kinds
def test_labels_keep_their_type_through_parquet_files(tmp_path: Path, kind: str) -> None:
    answers = answers_from(frame(TYPED[kind]))
    write_answers(tmp_path / "a.parquet", answers)
    back = read_answers(tmp_path / "a.parquet")
    assert isinstance(back.domain, Choices)
    assert back.domain.labels == tuple(sorted(set(TYPED[kind])))
    assert {type(label).__name__ for label in back.domain.labels} == {kind}
    estimate = Majority().fit(back)
    write_estimates(tmp_path / "e.parquet", estimate)
    assert pq.read_table(tmp_path / "e.parquet")["value"].to_pylist() == estimate.values()


def test_a_csv_file_has_texts_and_their_spelling_is_that_of_the_labels(tmp_path: Path) -> None:
    write_answers(tmp_path / "a.csv", answers_from(frame(TYPED["bool"])))
    assert (tmp_path / "a.csv").read_text().splitlines()[1] == "a,q1,false"
    assert read_answers(tmp_path / "a.csv").domain == Choices((False, True))


def test_a_start_keeps_the_type_too(tmp_path: Path) -> None:
    estimate = DawidSkene().fit(frame(TYPED["int"]))
    write_start(start_beside(tmp_path / "e.csv"), estimate)
    domain = read_start(tmp_path / "e.csv").domain
    assert isinstance(domain, Choices)
    assert domain.labels == (0, 1)


@pytest.mark.parametrize("value", [1, 1.0, "1", np.int64(1), np.float32(1)])
def test_one_option_has_one_code_whatever_type_it_comes_in(value: object) -> None:
    assert Choices((0, 1)).code(value) == 1
    assert Choices(("0", "1")).code(value) == 1


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, np.float32("nan"), pd.NA, pd.NaT])
def test_what_is_missing_is_no_answer(missing: object) -> None:
    for domain in (Choices(("no", "yes")), Scale(1, 5)):
        assert domain.code(missing) == -1
        assert Answers.from_rows([("a", "q", missing)], domain).answer.tolist() == [-1]


def test_categories_are_the_domain_in_their_order() -> None:
    kind = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    labels = pd.Series(["high", "low", "low", "low"]).astype(kind)
    assert answers_from(frame(labels)).domain == Choices(("low", "mid", "high"))
    assert answers_from(frame(labels.cat.as_unordered())).domain == Choices(("low", "mid", "high"))
    assert answers_from(frame(pd.Categorical([3, 1, 1, 1], [3, 2, 1]))).domain == Choices((3, 2, 1))
    enum = pl.DataFrame(IDS | {"label": labels.tolist()}).with_columns(
        pl.col("label").cast(pl.Enum(["low", "mid", "high"]))
    )
    assert answers_from(enum).domain == Choices(("low", "mid", "high"))


def test_wide_columns_of_one_category_share_their_domain() -> None:
    kind = pd.CategoricalDtype(["no", "maybe", "yes"])
    wide = pd.DataFrame({"worker": ["a", "b"], "q1": ["no", "yes"], "q2": ["yes", None]}).astype(
        {"q1": kind, "q2": kind}
    )
    assert answers_from(wide, question=["q1", "q2"]).domain == Choices(("no", "maybe", "yes"))


@pytest.mark.parametrize("options", ["yes", "yes,no", b"yes"])
def test_a_text_is_no_list_of_options(options: Any) -> None:
    with pytest.raises(DomainError, match="options must be a list; got the text"):
        Choices(options)


def test_similar_options_are_refused_wherever_they_are_seen() -> None:
    with pytest.raises(DomainError, match="the options 'Yes' and 'yes' differ only in case"):
        choices_of(["Yes", "no", "yes"])
    assert Choices(("Yes", "yes")).size == 2


def test_a_spelling_of_a_named_option_is_pointed_out_or_joined(tmp_path: Path) -> None:
    table, domain = frame(["yes ", "yes", "no", "no"]), Choices(("no", "yes"))
    with pytest.raises(
        FileError, match=r"row 1, column 'label'.* it differs from 'yes' only in white space: correct it"
    ):
        answers_from(table, domain)
    assert answers_from(table, domain, normalize=True).answer.tolist() == [1, 1, 0, 0]


def test_joining_does_not_depend_on_the_order_of_rows() -> None:
    labels = ["Yes", "yes ", "YES", "Yes"]
    forth, back = (answers_from(frame(each), normalize=True).domain for each in (labels, labels[::-1]))
    assert forth == back == Choices(("Yes",))


def test_a_series_is_gold_and_its_missing_truths_are_unknown() -> None:
    table = frame(TYPED["str"])
    gold = pd.Series({"q1": "n", "q2": None})
    assert DawidSkene(gold=gold).fit(table).values() == ["n", "n"]
    with pytest.raises(InputError, match="gold must name each entry once; got 'q1' twice"):
        DawidSkene(gold=pd.Series(["n", "y"], ["q1", "q1"]))


def test_missing_truths_are_not_scored() -> None:
    estimate = Majority().fit(frame(TYPED["str"]))
    assert score(estimate, pd.Series({"q1": "y", "q2": None})) == score(estimate, {"q1": "y"})


@pytest.mark.parametrize("entropy", [42, "42", np.random.default_rng(1), np.random.RandomState(1), None, np.zeros(3)])
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_seed_is_no_entropy(name: str, entropy: Any) -> None:
    chosen = mechanism(name, **({} if name == "none" else {"epsilon": 1.0}))
    answers = Answers.from_rows([("a", "q", "1"), ("b", "q", "2")], Scale(1, 5))
    with pytest.raises(InputError, match=r"pass SystemEntropy\(\) for answers of people, or entropy_from\("):
        chosen.randomize(answers, entropy)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_frame_is_not_randomised_before_its_options_are_named(name: str) -> None:
    chosen: Any = mechanism(name, **({} if name == "none" else {"epsilon": 1.0}))
    with pytest.raises(InputError, match="a mechanism randomises Answers; got DataFrame; make them with answers_from"):
        chosen.randomize(frame(TYPED["str"]), SystemEntropy())


def test_folders_and_globs_of_parquet_are_one_table(tmp_path: Path) -> None:
    for part, rows in enumerate((IDS | {"label": [1, 1, 0, 0]}, {"worker": ["d"], "task": ["q1"], "label": [1]})):
        pd.DataFrame(rows).to_parquet(tmp_path / f"part-{part}.parquet")
    (tmp_path / "_SUCCESS").touch()
    for path in (tmp_path, tmp_path / "*.parquet"):
        reports = read_reports(path)
        assert len(reports) == 5
        assert Majority().fit_predict(reports) == {"q1": 1, "q2": 0}
    pd.DataFrame({"worker": ["e", "a"], "task": ["q1", "q1"], "label": [1, 1]}).to_parquet(tmp_path / "part-2.parquet")
    with pytest.raises(FileError, match=r"part-2\.parquet, row 2, column 'question': this worker has answered"):
        read_reports(tmp_path)


def test_parts_of_reports_must_share_their_channels(tmp_path: Path) -> None:
    answers = answers_from(frame(TYPED["str"]))
    for epsilon in (1, 2):
        write_reports(
            tmp_path / f"{epsilon}.parquet", RandomizedResponse(epsilon=epsilon).randomize(answers, entropy_from(1))
        )
    with pytest.raises(FileError, match=r"2\.parquet has other channels than 1\.parquet"):
        read_reports(tmp_path)


def test_a_folder_without_parquet_and_an_address_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is a folder without Parquet files; name a file"):
        read_reports(tmp_path)
    with pytest.raises(FileError, match="no file matches"):
        read_reports(tmp_path / "*.parquet")
    with pytest.raises(FileError, match="is an address, not a file on this machine"):
        read_reports("s3://bucket/answers.parquet")


def test_columns_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("answer,who,what,worker\nyes,a,q,x\n")
    read = read_answers(tmp_path / "a.csv", worker="who", question="what")
    assert (read.workers.tolist(), read.questions.tolist()) == (["a"], ["q"])
    with pytest.raises(FileError, match="there is no column 'whom'; got answer, who, what, worker; check the name"):
        read_answers(tmp_path / "a.csv", worker="whom", question="what")
    with pytest.raises(FileError, match="there is no column 'whom'; got worker, task, label"):
        reports_from(frame(TYPED["str"]), worker="whom")
