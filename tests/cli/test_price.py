"""`crowdveil price`: the JSON contract, the note on what bids may tell, and refusals in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.run import crowdveil, crowdveil_json


@pytest.fixture
def bids(tmp_path: Path) -> Path:
    path = tmp_path / "bids.csv"
    path.write_text("worker,epsilon,bid\nada,1,1\nbob,2,2\ncleo,1.5,2.5\ndan,1,6\n")
    return path


@pytest.mark.parametrize(
    ("mechanism", "flags"),
    [("fair-query", ["--budget", "8"]), ("fixed-accuracy", ["--error", "2"]), ("single-minded", ["--budget", "8"])],
)
def test_auctions_name_winners_payments_and_what_a_bid_may_tell(bids: Path, mechanism: str, flags: list[str]) -> None:
    result = crowdveil_json("price", mechanism, bids, *flags)
    assert result["mechanism"] == mechanism
    assert result["total"] == pytest.approx(sum(winner["payment"] for winner in result["winners"]))
    assert result["winners"]
    assert "may itself tell" in result["note"]
    assert "may itself tell" in crowdveil("price", mechanism, bids, *flags).stdout


def test_offers_rise_to_the_highest_price() -> None:
    flags = ["--error", "0.1", "--epsilon", "0.5", "--first-price", "0.1", "--highest-price", "1"]
    result = crowdveil_json("price", "take-it-or-leave-it", *flags)
    assert [row["price"] for row in result["rounds"]] == [0.1, 0.2, 0.4, 0.8, 1.0]
    assert "ask" in crowdveil("price", "take-it-or-leave-it", *flags).stdout


def test_levels_are_offered_pay_by_information(tmp_path: Path) -> None:
    path = tmp_path / "levels.csv"
    path.write_text("level,noise,share\nnone,0,0.5\nlow,9,0.5\n")
    flags = ["--budget", "11", "--opinion-variance", "1"]
    result = crowdveil_json("price", "levels", path, *flags, "--n-workers", "20")
    assert result["pay"] == {"none": pytest.approx(1.0), "low": pytest.approx(0.1)}
    assert crowdveil("price", "levels", path, *flags).returncode == 2


@pytest.mark.parametrize(
    ("row", "sentence"),
    [("eve,1,much", "row 2, column 'bid'"), ("eve,1,-1", "row 2, column 'bid'"), ("eve,1,nan", "row 2, column 'bid'")],
)
def test_bad_bids_are_refused_with_their_row(tmp_path: Path, row: str, sentence: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"worker,epsilon,bid\n{row}\nbob,1,1\n")
    for mechanism in ("fair-query", "single-minded"):
        done = crowdveil("price", mechanism, path, "--budget", "2")
        assert done.returncode == 2
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "1e999999999", "lots"])
def test_a_budget_that_is_no_amount_is_refused(bids: Path, budget: str) -> None:
    done = crowdveil("price", "fair-query", bids, f"--budget={budget}")
    assert done.returncode == 2
    assert "budget must be a number above 0" in done.stderr
    assert "Traceback" not in done.stderr
