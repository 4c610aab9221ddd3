"""Answers protected one by one: within the ceiling of their pool, beside the sums and never in them."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil import Choices
from crowdveil.accounting import Budget, Ledger, MemoryStorage, Spend, SqliteStorage, nano_up
from crowdveil.accounting.nano import from_nano
from crowdveil.errors import BudgetError, InputError
from crowdveil.mechanisms import mechanism

DOMAIN = Choices(("no", "yes"))
CHANNELS = {
    epsilon: mechanism("randomized-response", epsilon=epsilon, protect_participation=True).channel(DOMAIN)
    for epsilon in (0.25, 1.0, 2.0)
}
NANO = {epsilon: nano_up(channel.guarantee.epsilon) for epsilon, channel in CHANNELS.items()}
CEILINGS = {"birds": 5.0, "dogs": 1.0}

batches = st.tuples(
    st.sampled_from(["birds", "dogs", "summed", "none"]), st.sampled_from(sorted(CHANNELS)), st.integers(1, 5)
)


def spend(epsilon: float, count: int, name: str) -> Spend:
    return Spend.through(CHANNELS[epsilon], name=name, count=count)


def storages(folder: Path) -> Any:
    yield MemoryStorage()
    with SqliteStorage(folder / "ledger.sqlite3") as stored:
        yield stored


@given(st.lists(batches, max_size=12))
def test_three_classes_are_never_added(sequence: list[tuple[str, float, int]]) -> None:
    ledger = Ledger(Budget(4, 0))
    accepted: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    for number, (pool, epsilon, count) in enumerate(sequence):
        key, cost = f"batch {number}", NANO[epsilon] * count
        cap = CEILINGS.get(pool, 4.0)
        fits = pool == "none" or Fraction(accepted[pool] + cost) <= Fraction(cap) * 10**9
        try:
            if pool == "none":
                plain = Spend.through(mechanism("none").channel(DOMAIN), name="plain", count=count)
                drawn = ledger.release("ada", plain, key=key, draw=lambda: "x")
            elif pool == "summed":
                drawn = ledger.release("ada", spend(epsilon, count, "summed"), key=key, draw=lambda: "x")
            else:
                drawn = ledger.release_one_by_one(
                    "ada", spend(epsilon, count, pool), pool=pool, ceiling=cap, key=key, draw=lambda: "x"
                )
            assert drawn == "x"
            assert fits
        except BudgetError:
            assert not fits
            continue
        answers[pool] += count
        accepted[pool] += cost if pool != "none" else 0
    loss = ledger.loss("ada")
    assert loss.epsilon == from_nano(accepted["summed"])
    assert loss.unprotected == ({"plain": answers["none"]} if answers["none"] else {})
    assert {name: (each.count, each.total) for name, each in loss.one_by_one.items()} == {
        pool: (answers[pool], from_nano(accepted[pool])) for pool in CEILINGS if answers[pool]
    }
    for pool, each in loss.one_by_one.items():
        assert each.total <= CEILINGS[pool]
        assert f"{pool}: {each.count} answers protected one by one at ε " in str(loss)
        assert "outside your cap; if tasks concern one thing, together up to ε " in str(loss)


def test_a_retry_costs_nothing_and_returns_the_first_draw(tmp_path: Path) -> None:
    for storage in storages(tmp_path):
        ledger = Ledger(Budget(4, 0), storage)
        mine = {"pool": "birds", "ceiling": 8.1, "key": "batch 1"}
        assert ledger.release_one_by_one("ada", spend(2.0, 2, "Birds"), draw=lambda: "first", **mine) == "first"
        assert ledger.release_one_by_one("ada", spend(2.0, 2, "Birds"), draw=lambda: "second", **mine) == "first"
        assert ledger.loss("ada").one_by_one["Birds"].count == 2
        with pytest.raises(InputError, match="another release"):
            ledger.release_one_by_one("ada", spend(2.0, 1, "Birds"), draw=lambda: "third", **mine)
        # A refusal draws nothing and changes nothing.
        with pytest.raises(BudgetError, match="your ceiling for 'Birds' leaves ε"):
            ledger.release_one_by_one("ada", spend(2.0, 3, "Birds"), draw=pytest.fail, **mine | {"key": "batch 2"})
        assert ledger.loss("ada").one_by_one["Birds"].count == 2


def test_a_pool_and_the_budget_do_not_share_a_ceiling() -> None:
    ledger = Ledger(Budget(1, 0))
    ledger.release_one_by_one("ada", spend(2.0, 50, "Birds"), pool="birds", ceiling=100.1, key="b", draw=str)
    assert ledger.affords("ada", spend(0.25, 3, "health"))
    ledger.release("ada", spend(0.25, 3, "health"), key="s", draw=str)
    assert ledger.left("ada").epsilon == from_nano(10**9 - 3 * NANO[0.25])


def test_what_is_not_protected_is_not_protected_one_by_one() -> None:
    plain = Spend.through(mechanism("none").channel(DOMAIN), name="plain", count=2)
    with pytest.raises(InputError, match="not protected"):
        Ledger(Budget(1)).release_one_by_one("ada", plain, pool="p", ceiling=9, key="k", draw=pytest.fail)
