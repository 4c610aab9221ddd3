"""Selection: equal to its definition, honest about its error, and never NaN."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from crowdveil import Choices, InputError, Reports, Scale
from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.guarantee import Guarantee
from crowdveil.mechanisms import mechanism
from crowdveil.selection import POLICIES, Candidates, Greedy, GroupError, History, selector
from crowdveil.selection.paper_error import PrintedError
from crowdveil.selection.result import rmse

GAMMAS = {"none": 0.0, "low": 3.0, "medium": 6.0, "high": 12.0}
PAYS = {"none": 0.8, "low": 0.4, "medium": 0.2, "high": 0.1}
EPSILONS = {"none": math.inf, "low": 3.42, "medium": 1.35, "high": 0.53}


def gaussian_reports(numbers: np.ndarray, gammas: np.ndarray) -> Reports:
    """Reports of Loki's Gaussian mechanism: one channel record per noise level; NaN is a question not answered."""
    kinds = sorted(set(gammas.tolist()))
    records = tuple(NoiseRecord("gaussian", gamma**2, Guarantee("value", 1.0, 1.0)) for gamma in kinds)
    worker, question = np.nonzero(~np.isnan(numbers))
    channel = np.array([kinds.index(gamma) for gamma in gammas])[worker]
    ids = (np.arange(len(numbers)), np.arange(numbers.shape[1]))
    return Reports(
        worker, question, np.full(len(worker), -1), channel, *ids, records, Scale(1, 5), numbers[worker, question]
    )


def crowd(rng: np.random.Generator, n_workers: int, n_questions: int) -> tuple[Reports, Candidates, np.ndarray]:
    levels = rng.choice(list(GAMMAS), n_workers, p=[0.138, 0.244, 0.389, 0.229])
    gammas = np.array([GAMMAS[level] for level in levels])
    truths = rng.uniform(2, 4, n_questions)
    opinions = truths + rng.normal(0, 0.6, (n_workers, 1)) + rng.normal(0, 0.8, (n_workers, n_questions))
    noisy = opinions + gammas[:, None] * rng.normal(size=opinions.shape)
    candidates = Candidates(
        np.arange(n_workers),
        levels,
        np.array([PAYS[level] for level in levels]),
        np.array([EPSILONS[level] for level in levels]),
        rng.uniform(0.3, 10, n_workers),
    )
    return gaussian_reports(noisy, gammas), candidates, opinions


def error_from_scratch(history: History, group: list[int]) -> float:
    """The root of E(mean of the group's next reports − average opinion)², from the law of the next deviations."""
    n, s = history.n_workers, len(group)
    inside = np.zeros(n)
    inside[group] = 1 / s
    bias = inside @ history.opinions.leaning
    noise = inside**2 @ history.noise
    camps = history.opinions.camp.T @ inside
    own = (inside - 1 / n) ** 2 @ (history.opinions.scatter - (history.opinions.camp**2).sum(axis=1))
    return math.sqrt(max(bias**2 + noise + camps @ camps + own, 0.0))


def greedy_from_scratch(history: History, candidates: Candidates, budget: float, fairness: float) -> list[int]:
    """Algorithm 4.1 until the money is gone, then the shortest way to the least error on it."""
    chosen: list[int] = []
    left, errors = budget, [math.inf]
    cost = candidates.costs(budget, fairness)
    while True:
        allowed = [
            i
            for i in np.flatnonzero(candidates.can_pay() & np.isfinite(cost)).tolist()
            if i not in chosen and candidates.pay[i] <= left + 1e-9
        ]
        if not allowed:
            return chosen[: int(np.argmin(errors))]
        each = {i: error_from_scratch(history, [*chosen, i]) for i in allowed}
        before = errors[-1] if chosen else max(each.values())
        best = max(allowed, key=lambda i: ((before - each[i]) / cost[i], -cost[i]))
        chosen.append(best)
        left -= candidates.pay[best]
        errors.append(each[best])


@pytest.mark.parametrize("seed", range(10))
def test_a_choice_that_goes_on_from_its_first_members_ends_as_if_made_at_once(seed: int) -> None:
    reports, candidates, _ = crowd(np.random.default_rng(seed), 30, 8)
    history = History.from_reports(reports)
    whole = Greedy().select(history, candidates, 5.0)
    given = [int(worker) for worker in whole.chosen[:2]]
    rest = Greedy().select(history, candidates, 5.0 - float(candidates.pay[given].sum()), given=given)
    assert rest.chosen == whole.chosen[2:]
    assert rest.cost == pytest.approx(whole.cost - float(candidates.pay[given].sum()))
    assert rest.expected_rmse == pytest.approx(whole.expected_rmse)
    assert rest.stopped_because == whole.stopped_because


@pytest.mark.parametrize("seed", range(30))
def test_greedy_is_identical_to_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    reports, candidates, _ = crowd(rng, int(rng.integers(5, 40)), int(rng.integers(2, 12)))
    fairness, budget = float(rng.choice([0.0, 0.3, 0.7, 1.0])), float(rng.uniform(0.5, 8))
    history = History.from_reports(reports)
    found = Greedy(fairness=fairness).select(history, candidates, budget)
    assert list(found.chosen) == greedy_from_scratch(history, candidates, budget, fairness)
    if found.chosen:
        assert found.expected_rmse == pytest.approx(error_from_scratch(history, list(found.chosen)), abs=1e-6)


def test_corrected_error_is_the_true_one_where_the_printed_formula_is_off_by_more_than_half() -> None:
    rng = np.random.default_rng(20261115)
    n_workers, n_questions = 100, 400
    gammas = rng.choice([0.0, 3.0, 6.0, 12.0], n_workers, p=[0.138, 0.244, 0.389, 0.229])
    opinions = rng.uniform(2, 4, n_questions) + rng.normal(0, 1, (n_workers, n_questions))
    group = np.sort(rng.permutation(n_workers)[:37])
    truth = opinions[group].mean(axis=0) - opinions.mean(axis=0)
    true_square = (gammas[group] ** 2).sum() / 37**2 + (truth**2).mean()
    squares = np.zeros(2)
    n_histories = 40
    for _ in range(n_histories):
        reports = gaussian_reports(opinions + gammas[:, None] * rng.normal(size=opinions.shape), gammas)
        ids = np.arange(n_workers)
        candidates = Candidates(ids, np.array(["low"] * n_workers), *(np.ones(n_workers) for _ in range(3)))
        history = History.from_reports(reports)
        for place, kind in enumerate((GroupError, PrintedError)):
            squares[place] += rmse(kind(history, candidates), group.tolist()) ** 2 / n_histories
    assert squares[0] == pytest.approx(true_square, rel=0.03)
    assert squares[1] < 0.5 * true_square


def test_corrected_error_is_the_true_one_when_few_were_seen_on_each_question() -> None:
    rng = np.random.default_rng(20261116)
    n_workers, n_questions, n_histories = 60, 200, 60
    gammas = rng.choice([0.0, 3.0, 6.0, 12.0], n_workers, p=[0.138, 0.244, 0.389, 0.229])
    candidates = Candidates(np.arange(n_workers), np.repeat("low", n_workers), *(np.ones(n_workers) for _ in range(3)))
    group = np.sort(rng.permutation(n_workers)[:20]).tolist()
    squares = []
    for _ in range(n_histories):
        numbers = rng.uniform(2, 4, n_questions) + rng.normal(0, 1, (n_workers, n_questions))
        numbers += gammas[:, None] * rng.normal(size=numbers.shape)
        numbers[rng.random(numbers.shape) > 0.1] = np.nan
        history = History.from_reports(gaussian_reports(numbers, gammas))
        squares.append(rmse(GroupError(history, candidates), group) ** 2)
    # Some six reports a question: the noise of their average is larger than that of the group itself.
    true_square = (gammas[group] ** 2).sum() / 20**2 + 1 / 20
    assert np.mean(squares) == pytest.approx(true_square, rel=0.05)


def test_a_sparse_history_does_not_stop_the_selection_at_once() -> None:
    rng = np.random.default_rng(20261117)
    reports, candidates, _ = crowd(rng, 60, 200)
    sparse = reports.rows(np.flatnonzero(rng.random(len(reports)) < 0.1))
    found = Greedy().select(History.from_reports(sparse), candidates, 100.0)
    assert len(found.chosen) > 20
    assert found.expected_rmse > 0


def test_who_is_listed_without_a_report_counts_as_a_stranger_of_their_level() -> None:
    reports, candidates, _ = crowd(np.random.default_rng(12), 80, 10)
    kept = reports.rows(np.flatnonzero(reports.worker != 3))
    silent = GroupError(History.from_reports(kept), candidates).with_each()[3]
    named = candidates.workers.copy()
    named[3] = 900
    table = Candidates(named, candidates.level, candidates.pay, candidates.epsilon, candidates.remaining)
    assert silent == GroupError(History.from_reports(kept), table).with_each()[3]


def test_a_hundred_thousand_workers_are_chosen_from_in_seconds() -> None:
    rng = np.random.default_rng(7)
    n_workers, n_questions, picks = 100_000, 50, 200
    levels = rng.choice(["low", "medium", "high"], n_workers)
    gammas = np.array([GAMMAS[level] for level in levels])
    numbers = 3 + rng.normal(size=(n_workers, n_questions)) * np.sqrt(1 + gammas[:, None] ** 2)
    candidates = Candidates(np.arange(n_workers), levels, *(np.ones(n_workers) for _ in range(3)))
    started = time.process_time()
    found = Greedy(paper_mode=True).select(
        History.from_reports(gaussian_reports(numbers, gammas)), candidates, picks + 0.5
    )
    assert time.process_time() - started < 15
    assert len(found.chosen) == picks


@pytest.mark.parametrize("policy", list(POLICIES))
@pytest.mark.parametrize("fairness", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("paper_mode", [False, True])
def test_no_nan_and_nobody_who_cannot_pay(policy: str, fairness: float, paper_mode: bool) -> None:
    reports, candidates, _ = crowd(np.random.default_rng(3), 30, 6)
    pick = selector(policy, fairness=fairness, paper_mode=paper_mode, seed=1)
    found = pick.select(History.from_reports(reports), candidates, 1000.0)
    assert math.isfinite(found.expected_rmse)
    assert math.isfinite(found.printed_rmse)
    assert candidates.can_pay()[list(found.chosen)].all()
    assert found.cost <= 1000
    if "greedy" in policy and fairness > 0:
        assert not candidates.unprotected[list(found.chosen)].any()


def test_everyone_chosen_leaves_only_the_noise() -> None:
    reports, candidates, _ = crowd(np.random.default_rng(4), 20, 5)
    rich = Candidates(candidates.workers, candidates.level, candidates.pay, candidates.epsilon, np.full(20, np.inf))
    history = History.from_reports(reports)
    found = selector("cheapest").select(history, rich, 100.0)
    gammas = np.array([GAMMAS[level] for level in candidates.level])
    assert len(found.chosen) == 20
    # Averages that weigh reports by their noise leave leanings that add up to almost nothing.
    plain = rmse(GroupError(history, rich), range(20))
    assert plain == pytest.approx(math.sqrt((gammas**2).sum()) / 20, rel=0.01)
    assert found.expected_rmse < plain
    assert found.stopped_because == "everyone who can pay is chosen"


def test_level_none_costs_infinite_privacy_whatever_its_epsilon_says() -> None:
    candidates = Candidates(
        np.array(["a", "b"]), np.array(["none", "low"]), np.ones(2), np.array([0.0, 1.0]), np.array([0.0, 2.0])
    )
    assert candidates.costs(4.0, 0.0).tolist() == [0.25, 0.25]
    assert candidates.costs(4.0, 0.5).tolist() == [math.inf, 0.375]
    assert candidates.costs(4.0, 1.0).tolist() == [math.inf, 0.5]


def test_stops_before_harm_and_paper_mode_spends_on() -> None:
    rng = np.random.default_rng(11)
    gammas = np.repeat([0.0, 12.0], 30)
    numbers = rng.uniform(2, 4, 20) + rng.normal(0, 0.5, (60, 20))
    reports = gaussian_reports(numbers + gammas[:, None] * rng.normal(size=numbers.shape), gammas)
    candidates = Candidates(np.arange(60), np.where(gammas, "high", "low"), np.ones(60), np.full(60, 0.1), np.ones(60))
    history = History.from_reports(reports)
    careful = Greedy().select(history, candidates, 60)
    spender = Greedy(paper_mode=True).select(history, candidates, 60)
    assert careful.stopped_because == "one more worker would raise the expected error"
    assert len(spender.chosen) == 60
    assert careful.expected_rmse < spender.expected_rmse


def test_a_worker_without_history_counts_as_an_average_one_of_the_same_level() -> None:
    reports, known, _ = crowd(np.random.default_rng(5), 200, 10)
    stranger = Candidates(
        np.append(known.workers, [900, 901]),
        np.append(known.level, ["low", "high"]),
        *(np.append(column, [1.0, 1.0]) for column in (known.pay, known.epsilon, known.remaining)),
    )
    alone = GroupError(History.from_reports(reports), stranger).with_each()
    # One report of noise 3 or 12, plus the spread of opinions (0.6² + 0.8²).
    assert alone[200] == pytest.approx(9 + 1, rel=0.15)
    assert alone[201] == pytest.approx(144 + 1, rel=0.15)


def test_a_stranger_who_is_not_protected_has_no_noise() -> None:
    rng = np.random.default_rng(9)
    reports = gaussian_reports(3 + rng.normal(0, 1, (50, 10)) + 6 * rng.normal(size=(50, 10)), np.full(50, 6.0))
    table = Candidates(["new", "newer"], ["none", "medium"], *(np.ones(2) for _ in range(3)))
    alone = GroupError(History.from_reports(reports), table).with_each()
    assert alone[1] - alone[0] == pytest.approx(36, rel=0.01)


def test_missing_answers_are_filled_with_the_workers_own_shrunken_mean() -> None:
    rng = np.random.default_rng(6)
    biased = np.zeros((40, 30))
    biased[0] += 2.0
    numbers = 3 + biased + rng.normal(0, 0.3, biased.shape)
    numbers[rng.random(numbers.shape) < 0.5] = np.nan
    reports = gaussian_reports(numbers, np.zeros(40))
    candidates = Candidates(np.arange(40), ["low"] * 40, *(np.ones(40) for _ in range(3)))
    alone = np.sqrt(GroupError(History.from_reports(reports), candidates).with_each())
    assert alone[0] == pytest.approx(2.0, rel=0.15)
    assert alone[1:].max() < 0.6


def test_history_of_choices_counts_every_option() -> None:
    rng = np.random.default_rng(8)
    domain = Choices(("no", "maybe", "yes"))
    channel = mechanism("randomized-response", epsilon=2.0).channel(domain)
    n_workers, n_questions = 60, 20
    worker, question = (grid.ravel() for grid in np.mgrid[:n_workers, :n_questions])
    reports = Reports(
        worker, question, rng.integers(0, 3, len(worker)), np.zeros(len(worker), dtype=np.int16),
        np.arange(n_workers), np.arange(n_questions), (channel,), domain,
    )  # fmt: skip
    candidates = Candidates(np.arange(n_workers), ["low"] * n_workers, *(np.ones(n_workers) for _ in range(3)))
    found = Greedy().select(History.from_reports(reports), candidates, 10)
    assert 0 < found.expected_rmse < 1
    assert len(found.chosen) == 10


@pytest.mark.parametrize("seed", range(3))
def test_order_of_reports_is_irrelevant(seed: int) -> None:
    reports, candidates, _ = crowd(np.random.default_rng(seed), 25, 6)
    shuffled = reports.rows(np.random.default_rng(seed).permutation(len(reports)))
    first, second = (Greedy().select(History.from_reports(each), candidates, 3.0) for each in (reports, shuffled))
    assert first.chosen == second.chosen


def test_hidden_participation_and_repeated_rows_are_refused() -> None:
    domain = Scale(1, 5)
    hidden = mechanism("randomized-response", epsilon=1, protect_participation=True).channel(domain)
    with pytest.raises(InputError, match="participation is protected"):
        History.from_reports(Reports.from_rows([("a", "q", 0, 0)], [hidden], domain))
    plain = mechanism("randomized-response", epsilon=1).channel(domain)
    with pytest.raises(InputError, match="row 2"):
        History.from_reports(Reports.from_rows([("a", "q", 0, 0), ("a", "q", 1, 0)], [plain], domain))


@pytest.mark.parametrize("wrong", [{"fairness": -0.1}, {"fairness": 1.1}, {"fairness": math.nan}])
def test_fairness_outside_its_range_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="fairness"):
        Greedy(**wrong)


@pytest.mark.parametrize("budget", [0.0, -1.0, math.nan, math.inf])
def test_budget_must_be_positive(budget: float) -> None:
    reports, candidates, _ = crowd(np.random.default_rng(0), 5, 2)
    with pytest.raises(InputError, match="budget"):
        Greedy().select(History.from_reports(reports), candidates, budget)
