"""Answers and reports: frozen columns, at most sixteen bytes a row, mixed channels, codes that point somewhere."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil import Answers, Choices, Reports, Scale, entropy_from, identity
from crowdveil.answers import check_unique
from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.errors import ChannelError, InputError
from crowdveil.guarantee import Guarantee
from crowdveil.mechanisms import mechanism

BINARY = Choices(("no", "yes"))
STARS = Scale(1, 5)


def record() -> NoiseRecord:
    return NoiseRecord("laplace", 8.0, Guarantee("value", 1.0, 0.5, research_only=True, note="in real arithmetic"))


def mixed() -> Reports:
    """One table in which three workers chose three kinds of privacy."""
    weak, strong = (mechanism("randomized-response", epsilon=e).channel(STARS) for e in (2.0, 0.5))
    rows = [("ada", "q1", 0, 0), ("bob", "q1", 4, 1), ("cy", "q1", 2, 2), ("ada", "q2", 3, 0)]
    return Reports.from_rows(rows, (weak, strong, identity(STARS)), STARS)


def test_workers_with_different_privacy_mix_in_one_table() -> None:
    reports = mixed()
    value, variance = reports.numbers()
    for row, index in enumerate(reports.channel):
        scores, spread = reports.channels[index].scores(STARS.numbers)
        assert value[row] == scores[reports.report[row]]
        assert variance[row] == spread.max()
    assert variance[2] == 0
    assert not reports.protected
    assert (reports.n_workers, reports.n_questions, len(reports)) == (3, 2, 4)


@given(st.permutations(range(4)))
def test_order_of_rows_never_matters(order: list[int]) -> None:
    reports = mixed()
    shuffled = reports.rows(np.array(order))
    assert np.array_equal(shuffled.numbers()[0], reports.numbers()[0][order])
    assert shuffled.workers is not None
    assert list(shuffled.workers) == list(reports.workers)


def test_a_row_takes_at_most_sixteen_bytes() -> None:
    n = 10_000_000
    reports = Reports(
        np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int16),
        ["w"], ["q"], (identity(BINARY),), BINARY,
    )  # fmt: skip
    columns = (reports.worker, reports.question, reports.report, reports.channel)
    assert sum(column.nbytes for column in columns) <= 16 * n


def test_columns_that_fit_are_not_copied_and_none_can_be_written() -> None:
    worker = np.zeros(3, np.int32)
    reports = Reports(worker, worker, worker, np.zeros(3, np.int16), ["w"], ["q"], (identity(BINARY),), BINARY)
    assert np.shares_memory(reports.worker, worker)
    with pytest.raises(ValueError, match="read-only"):
        reports.report[0] = 1
    with pytest.raises(FrozenInstanceError):
        reports.domain = STARS


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"report": [0, 5, 0, 0]}, "row 2"),
        ({"report": [0, -1, 0, 0]}, "row 2"),
        ({"worker": [0, 1, 2, 3]}, "worker codes must be from 0 to 2; got 3"),
        ({"question": [0, 0, 0, -1]}, "question codes must be from 0 to 1; got -1"),
        ({"channel": [0, 1, 3, 0]}, "channel codes must be from 0 to 2; got 3"),
        ({"channel": np.array([0, 1, 2, 65536])}, "codes must be whole numbers from -32768 to 32767"),
        ({"worker": np.array([0, 1, 2, 2**32])}, "codes must be whole numbers"),
        ({"report": np.array([0.0, 4.0, np.nan, 3.0])}, "codes must be whole numbers"),
        ({"report": [0, 4]}, "same length"),
        ({"domain": BINARY}, "other answers than this table's"),
        ({"channels": (record(), record(), record())}, "reports are numbers; got none"),
    ],
)
def test_codes_that_point_nowhere_are_refused(change: dict[str, object], problem: str) -> None:
    with pytest.raises((InputError, ChannelError), match=problem):
        replace(mixed(), **change)


def test_numbers_of_research_mechanisms_are_finite() -> None:
    zeros, index = np.zeros(2, np.int32), np.zeros(2, np.int16)
    build = lambda number: Reports(zeros, zeros, zeros - 1, index, ["w"], ["q"], (record(),), STARS, number)  # noqa: E731
    value, variance = build(np.array([1.5, 2.5])).numbers()
    assert value.tolist() == [1.5, 2.5]
    assert variance.tolist() == [8.0, 8.0]
    with pytest.raises(InputError, match="row 2"):
        build(np.array([1.0, np.inf]))


def test_a_noise_record_round_trips_and_a_changed_one_is_refused() -> None:
    wire = json.loads(json.dumps(record().to_json()))
    assert NoiseRecord.from_json(wire) == record()
    for change in ({"variance": "1.0"}, {"epsilon": "0.1"}, {"note": ""}, {"extra": 1}):
        with pytest.raises(ChannelError):
            NoiseRecord.from_json(wire | change)
    with pytest.raises(ChannelError):
        NoiseRecord.from_json(None)


def test_unprotected_reports_are_the_answers_without_the_empty_ones() -> None:
    answers = Answers.from_rows([("ada", "q1", "yes"), ("ada", "q2", None), ("bob", "q1", "no")], BINARY)
    reports = Reports.unprotected(answers)
    assert reports.report.tolist() == [1, 0]
    assert list(reports.questions) == ["q1", "q2"]


def test_answers_become_a_grid_with_the_empty_ones() -> None:
    answers = Answers.from_rows([("ada", "q1", 5), ("bob", "q2", 1)], STARS)
    assert answers.grid().tolist() == [[4, -1], [-1, 0]]


@pytest.mark.parametrize(
    ("answer", "problem"), [([2], "codes must be from -1 to 1; got 2"), ([-2], "got -2"), ([0, 1], "same length")]
)
def test_answers_outside_the_domain_are_refused(answer: list[int], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Answers(np.array([0]), np.array([0]), np.array(answer), ["w"], ["q"], BINARY)


def test_the_first_repeated_pair_is_found() -> None:
    worker, question = np.array([0, 1, 0, 1]), np.array([0, 0, 0, 0])
    assert check_unique(worker, question, 1) == 2
    assert check_unique(worker[:2], question[:2], 1) is None


def test_an_empty_table_is_a_table() -> None:
    answers = Answers.from_rows([], STARS)
    for protect in (False, True):
        crowd = mechanism("randomized-response", epsilon=1, protect_participation=protect)
        assert len(crowd.randomize(answers, entropy_from(1))) == 0


def test_tables_under_each_other_share_ids_and_channels() -> None:
    domain = Choices(("no", "yes"))
    first = Answers.from_rows([("ada", "q1", "yes"), ("bob", "q2", "no")], domain)
    second = Answers.from_rows([("bob", "q1", "no"), ("eve", "q3", "yes")], domain)
    joined = Reports.concat([Reports.unprotected(first), Reports.unprotected(second)])
    assert joined.workers.tolist() == ["ada", "bob", "eve"]
    assert joined.questions.tolist() == ["q1", "q2", "q3"]
    rows = zip(joined.workers[joined.worker], joined.questions[joined.question], joined.report, strict=True)
    assert list(rows) == [("ada", "q1", 1), ("bob", "q2", 0), ("bob", "q1", 0), ("eve", "q3", 1)]
    assert len(joined.channels) == 1


def test_tables_of_other_domains_are_not_put_together() -> None:
    tables = [
        Reports.unprotected(Answers.from_rows([("a", "q", "yes")], Choices(each))) for each in (("yes", "no"), ("yes",))
    ]
    with pytest.raises(InputError, match="table 2 is about"):
        Reports.concat(tables)
    with pytest.raises(InputError, match="no tables"):
        Reports.concat([])
