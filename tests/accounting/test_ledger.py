"""The ledger refuses what would pass the budget, whatever races, retries or dies around it."""

from __future__ import annotations

import math
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from disk import room_for
from hypothesis import given
from hypothesis import strategies as st

from crowdveil import BudgetError, Choices, FileError, InputError, identity
from crowdveil.accounting import (
    Budget,
    GaussianLaw,
    JointLaw,
    Ledger,
    MemoryStorage,
    PureLaw,
    Spend,
    SqliteStorage,
    Storage,
    cells_at_stake,
    nano_down,
    nano_up,
)
from crowdveil.accounting.storage import Charge
from crowdveil.channel import Channel
from crowdveil.channel.encoding import Rotate
from crowdveil.mechanisms import mechanism

FIVE = ("1", "2", "3", "4", "5")


@cache
def five_ary(epsilon: float) -> Channel:
    lie = int(2**32 / (math.exp(epsilon) + 4)) + 1
    return Channel(FIVE, FIVE, 32, "rotate", Rotate(2**32 - 4 * lie, lie))


def answer(epsilon: float, name: str = "health") -> Spend:
    return Spend.through(five_ary(epsilon), name=name)


@pytest.fixture(params=["memory", "sqlite"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    if request.param == "memory":
        yield MemoryStorage()
        return
    with SqliteStorage(tmp_path / "ledger.sqlite") as opened:
        yield opened


def fill(ledger: Ledger, epsilon: float) -> int:
    count = 0
    while ledger.affords("ada", answer(epsilon)):
        ledger.charge("ada", answer(epsilon), key=str(count))
        count += 1
    return count


def test_twenty_three_five_ary_answers_fit_into_four(storage: Storage) -> None:
    ledger = Ledger(Budget(4, 1e-6), storage)
    assert fill(ledger, 0.25) == 23
    with pytest.raises(BudgetError):
        ledger.charge("ada", answer(0.25), key="one more")


def test_few_large_answers_are_counted_by_basic_composition(storage: Storage) -> None:
    assert fill(Ledger(Budget(4, 1e-6), storage), 2) == 2


def test_without_delta_only_epsilon_counts(storage: Storage) -> None:
    assert fill(Ledger(Budget(4, 0), storage), 0.25) == 16


def test_a_refusal_carries_its_numbers_and_charges_nothing(storage: Storage) -> None:
    ledger = Ledger(Budget(1, 0), storage)
    ledger.charge("w7", Spend(PureLaw(0.75), "health"), key="a")
    with pytest.raises(BudgetError, match=r"worker 'w7' has ε 0\.25") as refused:
        ledger.charge("w7", Spend(PureLaw(0.5), "income"), key="b")
    error = refused.value
    assert (error.worker, error.left, error.cost) == ("w7", 0.25, 0.5)
    assert error.cost_rho == pytest.approx(0.5 * math.tanh(0.25), abs=1e-8)
    assert ledger.loss("w7").epsilon == 0.75
    assert len(ledger.receipts("w7")) == 1


def test_a_retry_returns_the_stored_receipt_at_no_cost(storage: Storage) -> None:
    ledger = Ledger(Budget(1), storage)
    first = ledger.charge("ada", answer(1), key="study")
    assert ledger.charge("ada", answer(1), key="study") == first
    assert len(ledger.receipts("ada")) == 1


def test_a_key_is_not_reused_for_another_release(storage: Storage) -> None:
    ledger = Ledger(Budget(5), storage)
    ledger.charge("ada", answer(1), key="study")
    with pytest.raises(InputError, match="already used"):
        ledger.charge("ada", answer(0.5), key="study")


def test_a_whole_study_is_charged_or_refused_together(storage: Storage) -> None:
    ledger = Ledger(Budget(2, 0), storage)
    with pytest.raises(BudgetError, match="'a' with 1 more"):
        ledger.charge("ada", answer(1, "a"), Spend.through(five_ary(1), name="b", count=2), key="study")
    assert ledger.loss("ada").epsilon == 0


def test_unprotected_answers_are_listed_by_name_and_never_summed(storage: Storage) -> None:
    ledger = Ledger(Budget(1, 0), storage)
    ledger.charge("ada", answer(1), key="full")
    open_answer = Spend.through(identity(Choices(FIVE)), name="weather", count=2)
    ledger.charge("ada", open_answer, key="open")
    loss = ledger.loss("ada")
    assert loss.epsilon <= 1
    assert loss.unprotected == {"weather": 2}
    assert "not protected, and not in these numbers: weather (2)" in str(loss)


@pytest.mark.parametrize("law", [GaussianLaw(0.5), JointLaw(0.1)])
def test_releases_with_delta_or_with_shared_randomness_are_refused(law: GaussianLaw | JointLaw) -> None:
    with pytest.raises(BudgetError, match="a ledger does not take it"):
        Ledger(Budget(10)).charge("ada", Spend(law, "rating"), key="a")


def test_workers_do_not_share_a_budget(storage: Storage) -> None:
    ledger = Ledger(Budget(1, 0), storage)
    for worker in ("ada", "bob"):
        ledger.charge(worker, answer(1), key="study")


def test_of_reports_at_stake_the_dearest_are_charged_in_each_currency(storage: Storage) -> None:
    """Many options cost a hair more ε and far less ρ than two: neither currency may be read off the other's order."""
    few, many = (
        mechanism("randomized-response", epsilon=epsilon, protect_participation=True).channel(
            Choices(tuple("abcdefghij"[:size]))
        )
        for epsilon, size in ((1.0, 2), (1.001, 10))
    )
    spends = [Spend.through(channel, name="study", count=5) for channel in (many, few)]
    ledger = Ledger(Budget(100), storage)
    charge = ledger.charge("ada", *spends, key="study", at_stake=4).charge
    assert charge == Charge(4 * nano_up(many.guarantee.epsilon), 4 * nano_up(few.guarantee.rho))
    assert ledger.charge("bob", *spends, key="study").charge.epsilon == sum(
        5 * nano_up(channel.guarantee.epsilon) for channel in (few, many)
    )


def test_what_is_known_elsewhere_is_carried_over_once(storage: Storage) -> None:
    ledger = Ledger(Budget(4, 0), storage)
    ledger.charge("ada", Spend(PureLaw(1), "here"), key="a")
    ledger.carry_over("ada", epsilon=3.5, rho=0.5, key="mirror")
    ledger.carry_over("ada", epsilon=3.5, rho=0.5, key="mirror again")
    assert ledger.loss("ada").epsilon == 3.5
    assert ledger.left("ada").epsilon == 0.5


def test_a_reused_key_does_not_carry_over_less_than_is_known(storage: Storage) -> None:
    ledger = Ledger(Budget(4, 0), storage)
    ledger.carry_over("ada", epsilon=1, rho=0.1, key="mirror")
    with pytest.raises(InputError, match="already used to carry over less"):
        ledger.carry_over("ada", epsilon=3.5, rho=0.5, key="mirror")
    assert ledger.carry_over("ada", epsilon=1, rho=0.1, key="mirror").number == 1


@pytest.mark.parametrize("amount", [-5.0, -1e-9, math.nan])
def test_no_release_pays_privacy_back(amount: float) -> None:
    for law in (PureLaw, JointLaw, GaussianLaw):
        with pytest.raises(InputError, match=r"(epsilon|mu) must be 0(,| or more)"):
            law(amount)
    spelled = Spend(PureLaw(1.0), "health").to_json() | {"epsilon": repr(amount)}
    with pytest.raises(InputError, match="epsilon must be 0 or more"):
        Spend.from_json(spelled)
    with pytest.raises(InputError, match="never falls"):
        Charge(-1, 0)


def test_what_is_carried_over_is_a_number(storage: Storage) -> None:
    with pytest.raises(InputError, match="carried over must be 0 or more; got ε nan"):
        Ledger(Budget(4, 0), storage).carry_over("ada", epsilon=math.nan, rho=0, key="mirror")


def test_a_spend_without_its_count_is_refused() -> None:
    spelled = Spend(PureLaw(1.0), "health", 100).to_json()
    del spelled["count"]
    with pytest.raises(InputError, match="count must be a whole number"):
        Spend.from_json(spelled)


@pytest.mark.parametrize("low", ["1e-999999999", 0, None, "1/0"])
def test_a_spelled_fraction_is_a_fraction(low: object) -> None:
    spelled = {"format": "crowdveil-spend/1", "kind": "two-layer", "name": "", "count": 1, "n_options": 2}
    with pytest.raises(InputError, match="needs the fraction 'low'"):
        Spend.from_json(spelled | {"low": low, "high": "1"})


def test_where_participation_is_visible_every_report_is_at_stake(storage: Storage) -> None:
    visible = Spend.through(five_ary(1), name="health", count=40)
    with pytest.raises(InputError, match="needs protected participation"):
        Ledger(Budget(100, 0), storage).charge("ada", visible, key="study", at_stake=2)


@pytest.mark.parametrize("at_stake", [0, -5])
def test_no_release_is_free_because_nothing_is_said_to_be_at_stake(storage: Storage, at_stake: int) -> None:
    ledger = Ledger(Budget(4, 0), storage)
    with pytest.raises(InputError, match="at least one report is at stake"):
        ledger.charge("ada", answer(1), key="study", at_stake=at_stake)
    with pytest.raises(InputError, match="bound on answers"):
        cells_at_stake(40, at_most=at_stake)
    assert ledger.loss("ada").epsilon == 0


@given(st.floats(0, 1e6))
def test_charges_round_up_and_caps_round_down(amount: float) -> None:
    assert nano_down(amount) / 10**9 <= amount * (1 + 1e-15)
    assert nano_up(amount) - nano_down(amount) in (0, 1)
    assert nano_up(amount) >= amount * 10**9 * (1 - 1e-15)


@given(st.lists(st.tuples(st.floats(0.01, 3), st.integers(1, 5)), min_size=1, max_size=20), st.floats(0.5, 6))
def test_grouping_reports_into_charges_changes_nothing(spends: list[tuple[float, int]], cap: float) -> None:
    together, apart = Ledger(Budget(1e5)), Ledger(Budget(1e5))
    together.charge("ada", *(Spend(PureLaw(epsilon), "q", count) for epsilon, count in spends), key="all")
    for index, (epsilon, count) in enumerate(spends):
        for each in range(count):
            apart.charge("ada", Spend(PureLaw(epsilon), "q"), key=f"{index}/{each}")
    assert together.loss("ada") == apart.loss("ada")


def race(n_threads: int, work: Callable[[int], None]) -> None:
    start = threading.Barrier(n_threads)

    def run(thread: int) -> None:
        start.wait()
        work(thread)

    threads = [threading.Thread(target=run, args=(thread,)) for thread in range(n_threads)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def test_sixteen_racing_threads_never_pass_the_cap(storage: Storage) -> None:
    ledger, granted, refused = Ledger(Budget(4, 1e-6), storage), [], []

    def work(thread: int) -> None:
        for number in range(6):
            try:
                granted.append(ledger.charge("ada", answer(0.25), key=f"{thread}/{number}"))
            except BudgetError as error:
                refused.append(error)

    race(16, work)
    assert (len(granted), len(refused)) == (23, 16 * 6 - 23)
    assert len({receipt.number for receipt in granted}) == 23


def test_sixteen_connections_to_one_file_never_pass_the_cap(tmp_path: Path) -> None:
    granted = []

    def work(thread: int) -> None:
        with SqliteStorage(tmp_path / "ledger.sqlite") as mine:
            ledger = Ledger(Budget(4, 1e-6), mine)
            for number in range(3):
                try:
                    granted.append(ledger.charge("ada", answer(0.25), key=f"{thread}/{number}"))
                except BudgetError:
                    return

    race(16, work)
    assert sorted(receipt.number for receipt in granted) == list(range(1, 24))


def test_racing_retries_of_one_key_are_charged_once(tmp_path: Path) -> None:
    receipts = []

    def work(_: int) -> None:
        with SqliteStorage(tmp_path / "ledger.sqlite") as mine:
            receipts.append(Ledger(Budget(1, 0), mine).charge("ada", answer(1), key="study"))

    race(8, work)
    assert len(receipts) == 8
    assert len(set(receipts)) == 1


def test_the_file_is_append_only_for_everyone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with SqliteStorage(path) as opened:
        Ledger(Budget(1), opened).charge("ada", answer(1), key="study")
        opened.keep("ada", "study", "drawn")
    connection = sqlite3.connect(path)
    for tampering in (
        "DELETE FROM receipts",
        "DELETE FROM spent",
        "DELETE FROM reports",
        "UPDATE spent SET epsilon = 0",
        "UPDATE receipts SET rho = 0",
        "UPDATE reports SET report = 'again'",
        "REPLACE INTO spent VALUES ('ada', 0, 0)",
        "REPLACE INTO receipts VALUES ('ada', 1, 'study', 0, 0, '[]')",
        "REPLACE INTO reports VALUES ('ada', 'study', 'again')",
    ):
        with pytest.raises(sqlite3.IntegrityError, match=r"ledger|drawn once"):
            connection.execute(tampering)
    connection.close()


@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_nobody_else_can_read_the_file_nor_its_journal(tmp_path: Path, umask: int) -> None:
    path, before = tmp_path / "ledger.sqlite", os.umask(umask)
    try:
        with SqliteStorage(path) as opened:
            made = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
            opened.keep("ada", "study", "drawn")
            with opened._transaction():
                opened._execute("INSERT INTO reports VALUES ('ada', 'other', 'drawn')")
                made |= {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert made == {"ledger.sqlite": 0o600, "ledger.sqlite-journal": 0o600}


TAMPERINGS = (
    "UPDATE spent SET epsilon = epsilon - 1",
    "UPDATE spent SET rho = 0",
    "UPDATE spent SET epsilon = -5000000000",
    "DELETE FROM spent",
    "DELETE FROM receipts WHERE key = '1'",
    "UPDATE receipts SET worker = 'bob' WHERE key = '1'",
)


def test_a_file_whose_sums_are_not_those_of_its_receipts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with SqliteStorage(path) as opened:
        for key in "01":
            Ledger(Budget(4), opened).charge("ada", answer(1), key=key)
        # Two amounts without end add up to one, and a refusal leaves a worker who has spent nothing.
        for key in "34":
            Ledger(Budget(4), opened).carry_over("eve", epsilon=math.inf, rho=math.inf, key=key)
        with pytest.raises(BudgetError):
            Ledger(Budget(0.5, 0), opened).charge("cleo", answer(1), key="0")
    SqliteStorage(path).close()
    honest = path.read_bytes()
    for tampering in TAMPERINGS:
        path.write_bytes(honest)
        tamper(path, tampering)
        with pytest.raises(FileError, match="sums are not those of its receipts"):
            SqliteStorage(path)


def tamper(path: Path, statement: str) -> None:
    """As somebody who knows their way around would: the triggers first."""
    connection = sqlite3.connect(path)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_damaged_file_is_told_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with SqliteStorage(path) as opened:
        Ledger(Budget(4), opened).charge("ada", answer(1), key="study")
    whole = path.read_bytes()
    for part in (whole[:100], whole[: len(whole) // 2], b"not a ledger" * 1000):
        path.write_bytes(part)
        with pytest.raises(FileError, match=r"^the ledger ledger.sqlite cannot be used: .*; make room on the disk"):
            SqliteStorage(path)


def test_on_a_full_disk_nothing_leaves_uncharged_and_the_ledger_goes_on_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    told: list[str] = []
    with SqliteStorage(path) as opened:
        ledger = Ledger(Budget(100, 0), opened)

        def release(key: int, report: str) -> str:
            return ledger.release("ada", answer(0.25), key=str(key), draw=lambda: report)

        def release_all() -> None:
            while len(told) < 100:
                told.append(release(len(told), "x" * 900))

        with room_for(path.stat().st_size + 3000), pytest.raises(FileError, match=r"cannot be used: .*disk"):
            release_all()
        assert 0 < len(told) <= len(opened.receipts("ada")) <= len(told) + 1
        assert release(len(told), "later") == release(len(told), "again") == "later"
    SqliteStorage(path).close()


def test_only_the_first_draw_of_a_key_ever_leaves(storage: Storage) -> None:
    ledger, draws = Ledger(Budget(1, 0), storage), iter(["first", "second"])
    assert ledger.release("ada", answer(1), key="study", draw=lambda: next(draws)) == "first"
    assert ledger.release("ada", answer(1), key="study", draw=lambda: next(draws)) == "first"


KILLED = """
    import os, signal, sys
    from crowdveil.accounting import Budget, Ledger, PureLaw, Spend, SqliteStorage

    path, moment = sys.argv[1:]
    ledger = Ledger(Budget(1, 0), SqliteStorage(path))

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def draw():
        return die() if moment == "at the draw" else "report"

    report = ledger.release("ada", Spend(PureLaw(1), "health"), key="study", draw=draw)
    if moment == "before sending":
        die()
    print(report)
"""


@pytest.mark.parametrize("moment", ["at the draw", "before sending"])
def test_a_killed_process_never_leaves_an_uncharged_release(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "ledger.sqlite"
    code = textwrap.dedent(KILLED)

    def run(moment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, path, moment], capture_output=True, text=True)

    killed = run(moment)
    assert (killed.returncode, killed.stdout) == (-9, "")
    with SqliteStorage(path) as opened:
        # Charged although nothing was sent: the loss is counted too high, never too low.
        assert Ledger(Budget(1, 0), opened).loss("ada").epsilon == 1
    assert run("never").stdout == "report\n"
    with SqliteStorage(path) as opened:
        ledger = Ledger(Budget(1, 0), opened)
        assert ledger.loss("ada").epsilon == 1
        with pytest.raises(BudgetError):
            ledger.charge("ada", Spend(PureLaw(1), "health"), key="another")
