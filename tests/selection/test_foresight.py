"""The error that a selection promises is the one that comes, and choosing is no worse than drawing lots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from crowdveil import Answers, Choices, Scale
from crowdveil.entropy import entropy_from
from crowdveil.mechanisms import mechanism
from crowdveil.selection import BudgetedGreedy, Candidates, Greedy, History, RandomWorkers, Selection

Array = NDArray[Any]
SEEDS = 6


@dataclass(frozen=True)
class Crowd:
    """People with a leaning each, who are as steady as each other or not, in one camp or in two."""

    kind: str
    n_workers: int
    n_past: int
    epsilon: float

    def drawn(self, rng: np.random.Generator, n_new: int = 400) -> tuple[Array, Array]:
        """Opinions about past and about new questions, worker × question."""
        bias = rng.normal(0, 0.5, (self.n_workers, 1))
        steady = rng.choice([0.3, 1.8], (self.n_workers, 1)) if self.kind == "erratic" else 0.7
        n = self.n_past + n_new
        opinion = rng.uniform(2, 4, n) + bias + steady * rng.normal(size=(self.n_workers, n))
        if self.kind == "camps":
            opinion += np.where(np.arange(self.n_workers) % 2, 0.9, -0.9)[:, None] * rng.choice([-1, 1], n)
        rounded = np.clip(np.rint(opinion), 1, 5).astype(np.int64)
        return rounded[:, : self.n_past], rounded[:, self.n_past :]

    def history(self, past: Array, seed: int) -> History:
        worker, question = (each.ravel() for each in np.indices(past.shape))
        ids = np.arange(past.shape[0]), np.arange(past.shape[1])
        answers = Answers(worker, question, past.ravel() - 1, *ids, Scale(1, 5))
        return History.from_reports(self.mechanism.randomize(answers, entropy_from(seed)))

    @property
    def mechanism(self) -> Any:
        return mechanism("randomized-response", epsilon=self.epsilon)

    @property
    def candidates(self) -> Candidates:
        ones = np.ones(self.n_workers)
        return Candidates(np.arange(self.n_workers), np.repeat("low", self.n_workers), ones, ones, 100 * ones)

    def real(self, selection: Selection, new: Array) -> float:
        """The squared error of the mean of new reports, exact over their noise."""
        group = np.array(selection.chosen, dtype=np.int64)
        _, variance = self.mechanism.channel(Scale(1, 5)).scores(Scale(1, 5).numbers)
        noise = variance[new[group] - 1].sum(axis=0) / len(group) ** 2
        return float(((new[group].mean(axis=0) - new.mean(axis=0)) ** 2 + noise).mean())


def played(
    crowd: Crowd, budget: float, policy: Greedy | BudgetedGreedy = BudgetedGreedy()
) -> tuple[float, float, float]:
    """Roots of the mean squares: what the policy promised and made, and what lots made of the same money.

    All workers have the same noise, so the inverse-variance mean is the plain one.
    """
    promised, made, lots = [], [], []
    for seed in range(SEEDS):
        past, new = crowd.drawn(np.random.default_rng(seed))
        history = crowd.history(past, seed)
        chosen = policy.select(history, crowd.candidates, budget)
        promised.append(chosen.expected_rmse**2)
        made.append(crowd.real(chosen, new))
        lots.append(crowd.real(RandomWorkers(seed=seed).select(history, crowd.candidates, budget), new))
    return tuple(float(np.sqrt(np.mean(each))) for each in (promised, made, lots))  # type: ignore[return-value]


@pytest.mark.parametrize("policy", [BudgetedGreedy(), Greedy()], ids=lambda policy: policy.name)
@pytest.mark.parametrize("kind", ["alike", "erratic", "camps"])
@pytest.mark.parametrize(
    ("n_workers", "n_past", "epsilon"), [(200, 10, 2.0), (100, 8, 1.0), (40, 20, 2.0), (100, 8, 20.0), (100, 50, 20.0)]
)
def test_what_is_promised_comes_and_is_no_worse_than_lots(
    kind: str, n_workers: int, n_past: int, epsilon: float, policy: Greedy | BudgetedGreedy
) -> None:
    """Past errors that cancelled by chance promised a third of the error, and chose too few people."""
    promised, made, lots = played(Crowd(kind, n_workers, n_past, epsilon), 20.0, policy)
    assert promised == pytest.approx(made, rel=0.2)
    assert made < 1.03 * lots


def test_steady_workers_are_preferred() -> None:
    _, made, lots = played(Crowd("erratic", 100, 8, 20.0), 20.0)
    assert made < 0.85 * lots


def test_camps_are_balanced_where_the_past_shows_them() -> None:
    _, made, lots = played(Crowd("camps", 100, 50, 20.0), 20.0)
    assert made < 0.75 * lots


@pytest.mark.parametrize("n_past", [8, 60, 300])
def test_independent_opinions_seldom_have_camps_and_then_small_ones(n_past: int) -> None:
    crowd = Crowd("none", 100, n_past, 3.0)
    found = [crowd.history(np.random.default_rng(seed).integers(1, 6, (100, n_past)), seed) for seed in range(40)]
    # One in twenty has one by chance.
    assert sum(each.opinions.camp.shape[1] > 0 for each in found) <= 8
    assert max(float((each.opinions.camp**2).sum() / each.opinions.scatter.sum()) for each in found) < 0.05


@pytest.mark.parametrize("options", [2, 3, 6])
def test_options_that_exclude_each_other_are_no_camps(options: int) -> None:
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        worker, question = (each.ravel() for each in np.indices((80, 40)))
        domain = Choices(tuple(f"option {n}" for n in range(options)))
        answers = Answers(worker, question, rng.integers(options, size=3200), np.arange(80), np.arange(40), domain)
        reports = mechanism("randomized-response", epsilon=2.0).randomize(answers, entropy_from(seed))
        found += History.from_reports(reports).opinions.camp.shape[1] > 0
    assert found <= 8


def test_two_camps_are_one_direction_in_which_they_differ() -> None:
    crowd = Crowd("camps", 100, 60, 20.0)
    past, _ = crowd.drawn(np.random.default_rng(1), 1)
    camp = crowd.history(past, 1).opinions.camp
    assert camp.shape[1] == 1
    side = np.sign(camp[:, 0]) * np.where(np.arange(100) % 2, 1, -1)
    assert abs(side.mean()) > 0.9
    # Opinions move by .9, a little less for being rounded and cut.
    assert np.abs(camp).mean() == pytest.approx(0.8, abs=0.15)
