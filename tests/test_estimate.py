"""Estimates and what they are made from can be copied, stored, shown and turned into frames."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from crowdveil import (
    Answers,
    Channel,
    Choices,
    DawidSkene,
    Estimate,
    InputError,
    Majority,
    Mean,
    RandomizedResponse,
    Reports,
    Scale,
    answers_from,
    entropy_from,
    reports_from,
)
from crowdveil.channel.joint import JointChannel
from crowdveil.inference import METHODS
from crowdveil.mechanisms import MECHANISMS, TwoLayer, mechanism

TABLE: dict[str, list[Any]] = {"worker": [1, 2, 3, 1], "task": ["q1", "q1", "q1", "q2"], "label": [1, 1, 0, 0]}
COPIES = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "copy": copy.copy, "deepcopy": copy.deepcopy}
copies = pytest.mark.parametrize("again", COPIES.values(), ids=COPIES)


def estimate() -> Estimate:
    return DawidSkene().fit(TABLE)  # type: ignore[arg-type]


def with_silence() -> Estimate:
    answers = Answers.from_rows([("a", "q1", 1), ("b", "q2", None)], Choices((0, 1)))
    return Majority().fit(Reports.unprotected(answers))


@copies
def test_an_estimate_is_copied_whole_and_stays_read_only(again: Any) -> None:
    first = estimate()
    second = again(first)
    assert second.values() == first.values()
    assert dict(second.provenance) == dict(first.provenance)
    assert {name: value.tolist() for name, value in second.parameters.items()} == {
        name: value.tolist() for name, value in first.parameters.items()
    }
    assert second.skills is not None
    assert second.skills.to_pandas().equals(first.skills.to_pandas())  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="read-only"):
        second.value[0] = 0
    with pytest.raises(TypeError):
        second.provenance["method"] = "mine"
    assert DawidSkene().fit(reports_from(TABLE), second).values() == first.values()


@copies
def test_tables_channels_and_guarantees_are_copied(again: Any) -> None:
    reports = RandomizedResponse(epsilon=1).randomize(answers_from(TABLE), entropy_from(1))
    second = again(reports)
    assert second.report.tolist() == reports.report.tolist()
    assert second.channels == reports.channels
    assert second.domain.labels == reports.domain.labels  # type: ignore[union-attr]
    assert not second.report.flags.writeable
    assert not again(answers_from(TABLE)).answer.flags.writeable
    assert again(reports.channels[0].guarantee) == reports.channels[0].guarantee
    assert again(Scale(0, 1, "0.1")).symbols == Scale(0, 1, "0.1").symbols


def test_a_pickled_channel_leaves_out_what_it_computed() -> None:
    channel = RandomizedResponse(epsilon=1).channel(Choices(tuple(range(60))))
    before = len(pickle.dumps(channel))
    _ = channel.votes, channel.table, channel.weights
    assert len(pickle.dumps(channel)) == before
    joint = TwoLayer(epsilon=1).randomize(answers_from(TABLE), entropy_from(1)).channels[0]
    assert isinstance(joint, JointChannel)
    assert pickle.loads(pickle.dumps(joint)) == joint


@pytest.mark.parametrize("name", METHODS)
@copies
def test_methods_are_copied(name: str, again: Any) -> None:
    assert again(METHODS[name]()) == METHODS[name]()


@pytest.mark.parametrize("name", MECHANISMS)
@copies
def test_mechanisms_are_copied(name: str, again: Any) -> None:
    chosen = mechanism(name, **({} if name == "none" else {"epsilon": 1.0}))
    assert again(chosen) == chosen


def test_what_is_large_is_shown_in_a_few_words() -> None:
    n = 5000
    table = {"worker": list(range(n)), "task": [f"q{row}" for row in range(n)], "label": [row % 2 for row in range(n)]}
    answers = answers_from(table)
    reports = RandomizedResponse(epsilon=1).randomize(answers, entropy_from(1))
    fitted = Majority().fit(reports)
    channel = RandomizedResponse(epsilon=1).channel(Choices(tuple(map(str, range(500)))))
    for shown in map(repr, (answers, reports, fitted, channel, channel.guarantee, Choices(tuple(range(3000))))):
        assert len(shown) < 200
        assert shown.count("\n") <= 3
    assert repr(fitted).startswith("Estimate of 5,000 questions by majority: {'q0': ")
    assert repr(reports) == ("Reports: 5,000 of 5,000 workers on 5,000 questions, Choices([0, 1]), ε ≤ 1 per value")
    assert repr(reports.channels[0].guarantee).startswith("Guarantee(unit='value', epsilon=0.99")
    assert "ε ≤ 1, " in repr(reports.channels[0])
    assert len(fitted.summary().splitlines()) < 10


def test_the_summary_says_what_came_out_of_what() -> None:
    lines = estimate().summary().splitlines()
    assert lines[0] == "dawid-skene: 2 of 2 questions estimated from 4 reports, 3 workers"
    assert "questions by value: 0: 1, 1: 1" in lines
    assert Mean().fit(reports_from(TABLE, domain=Scale(0, 1))).summary()


@pytest.mark.parametrize("fitted", [estimate(), with_silence(), Mean().fit(reports_from(TABLE, domain=Scale(0, 1)))])
def test_a_notebook_shows_a_chart_and_a_table_that_load_nothing(fitted: Estimate) -> None:
    html = fitted._repr_html_()
    tree = ElementTree.fromstring(html)
    assert tree.find(".//{http://www.w3.org/2000/svg}svg") is not None
    assert tree.find(".//table") is not None
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")


def test_html_is_escaped() -> None:
    answers = Answers.from_rows([("a", "<script>", "<b>")], Choices(("<b>", "&")))
    html = Majority().fit(Reports.unprotected(answers))._repr_html_()
    assert "<script>" not in html
    assert "<b>&" not in html
    ElementTree.fromstring(html)


def test_frames_have_the_columns_of_the_file_and_keep_types() -> None:
    fitted = estimate()
    table = fitted.to_pandas()
    assert list(table) == ["question", "value", "confidence", "low", "high", "p:0", "p:1"]
    assert table["value"].tolist() == [1, 0]
    assert table["value"].dtype == np.int64
    assert fitted.to_polars()["value"].to_list() == fitted.to_arrow()["value"].to_pylist() == [1, 0]
    assert fitted.skills is not None
    assert (
        list(fitted.skills.to_pandas()) == list(fitted.skills.to_polars().columns) == ["worker", "skill", "low", "high"]
    )
    assert fitted.skills.to_pandas()["worker"].tolist() == [1, 2, 3]


def test_a_question_without_an_estimate_is_missing_in_a_frame() -> None:
    table = with_silence().to_pandas()
    assert table["value"].tolist() == [1, None]
    assert table["confidence"].isna().tolist() == [False, True]
    assert table["confidence"].dtype == np.float64
    assert with_silence().to_polars()["value"].to_list() == [1, None]
    numbers = Mean().fit(Reports.unprotected(Answers.from_rows([("a", "q", 1), ("b", "p", None)], Scale(0, 1))))
    assert numbers.to_pandas()["value"].dtype == np.float64


def test_ids_of_mixed_types_are_kept_by_pandas() -> None:
    answers = Answers.from_rows([("a", 1, "x"), ("a", "one", "x")], Choices(("x", "y")))
    fitted = Majority().fit(Reports.unprotected(answers))
    assert fitted.to_pandas()["question"].tolist() == [1, "one"]
    assert fitted.to_arrow()["question"].to_pylist() == ["1", "one"]


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_a_missing_package_is_one_sentence(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = estimate()
    monkeypatch.setitem(sys.modules, package, None)
    convert = {"pandas": fitted.to_pandas, "polars": fitted.to_polars, "pyarrow": fitted.to_arrow}[package]
    with pytest.raises(InputError, match=f"this needs the package '{package}', which is missing; install it with: pip"):
        convert()


def test_a_method_has_parameters_and_clones() -> None:
    method = DawidSkene(max_iter=7)
    assert method.get_params()["max_iter"] == 7
    assert type(method)(**method.get_params()) == method
    assert method.clone() == method
    assert method.clone(tol=0.5) == DawidSkene(max_iter=7, tol=0.5)
    with pytest.raises(InputError, match=r"did you mean max_iter\?"):
        method.clone(max_itr=3)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_a_frame(name: str) -> None:
    fitted: Any = METHODS[name]()
    table = pd.DataFrame(TABLE)
    assert fitted.fit(table).values() == fitted.fit(reports_from(TABLE)).values()
    assert fitted.fit(answers_from(TABLE)).values() == fitted.fit(table).values()
    assert list(fitted.fit_predict(table)) == fitted.fit(table).questions.tolist()


def test_what_a_fit_cannot_use_is_refused() -> None:
    method: Any = Majority()
    with pytest.raises(InputError, match="columns and domains are for tables; got Reports; leave them out"):
        method.fit(reports_from(TABLE), worker="worker")
    with pytest.raises(InputError, match="start must be an earlier Estimate; got str"):
        method.fit(TABLE, "estimates.csv")


def test_protected_reports_in_a_frame_are_fitted_through_their_channels() -> None:
    reports = RandomizedResponse(epsilon=1).randomize(answers_from(TABLE), entropy_from(1))
    channel = reports.channels[0]
    assert isinstance(channel, Channel)
    table = {
        "worker": reports.workers[reports.worker].tolist(),
        "task": reports.questions[reports.question].tolist(),
        "report": [channel.outputs[code] for code in reports.report],
    }
    method: Any = Majority()
    fitted = method.fit(table, channels=reports.channels, domain=reports.domain)
    assert fitted.confidence.tolist() == method.fit(reports).confidence.tolist()
