"""`crowdveil bench` measures what it says, and admits which peers are missing."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from cli.run import crowdveil, crowdveil_json

from crowdveil.bench import inference, topics
from crowdveil.bench._measure import crowd, row


def test_every_topic_has_cases() -> None:
    assert "inference" in topics()
    assert not any(topic.startswith("_") for topic in topics())


def test_rows_keep_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        inference,
        "cases",
        lambda quick: iter([inference._iteration("one-coin", "OneCoinDawidSkene", 2000, text_ids=True, rounds=1)]),
    )
    (found,) = crowdveil_json("bench", "inference", "--quick")["rows"]
    assert {"case", "n", "ours", "peer", "peer_name", "ratio"} <= set(found)
    assert found["ours"] > 0
    if not find_spec("crowdkit"):
        assert found["peer"] is None
        assert "not installed" in found["peer_name"]
    assert "one iteration" in crowdveil("bench", "inference", "--quick").stdout


def test_a_part_can_be_measured_alone() -> None:
    found = crowdveil_json("bench", "inference", "--quick", "--only", "agreement")["rows"]
    assert [row["case"].partition(", ")[0] for row in found] == ["dawid-skene"] * 2
    assert found[0]["ours"] == 0
    done = crowdveil("bench", "inference", "--only", "weather")
    assert done.returncode == 2
    assert "--only must be one of start-up" in done.stderr


def test_a_ratio_says_how_many_times_less_ours_takes() -> None:
    assert row("case", 1, 2.0, 10.0, "peer", unit="s")["ratio"] == 5
    assert row("case", 1, 2.0, None, "peer", unit="s")["ratio"] is None


def test_two_threads_and_memory_can_be_measured() -> None:
    assert inference._memory(100_000)["ours"] > 0
    assert inference._threads(2000)["ratio"] > 0


def test_the_measured_crowd_is_what_it_says() -> None:
    reports = crowd(4000, text_ids=True)
    assert len(reports) == 4000
    assert reports.n_questions == 400
    assert isinstance(reports.workers[0], str)


def test_an_unknown_topic_is_refused() -> None:
    done = crowdveil("bench", "weather")
    assert done.returncode == 2
    assert "the topic must be one of" in done.stderr
