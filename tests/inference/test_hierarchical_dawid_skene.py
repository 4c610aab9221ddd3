"""Hierarchical Dawid–Skene: its bound rises, its oracle agrees, and it sees who does not attend to the questions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from accuracy.families import EXPERT, GUESSER, REPEATER, Family
from inference.crowds import choice_crowd, protected
from numpy.typing import NDArray
from scipy.special import digamma, gammaln
from scipy.stats import dirichlet_multinomial

from crowdveil import Answers, Choices, InputError, Reports
from crowdveil.inference import HierarchicalDawidSkene, Majority
from crowdveil.inference.engine.blocks import context_of
from crowdveil.inference.methods.hierarchical_dawid_skene import Crowd
from crowdveil.inference.priors.dirichlet_multinomial import Dirichlets

Array = NDArray[Any]


@pytest.mark.parametrize("epsilon", [0.5, 2.0, None])
@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("n_options", [2, 4])
def test_the_bound_rises_from_the_first_step(epsilon: float | None, accelerate: bool, n_options: int) -> None:
    answers, _ = choice_crowd(3, n_options=n_options)
    reports = Reports.unprotected(answers) if epsilon is None else protected(answers, epsilon, 3)
    estimate = HierarchicalDawidSkene(accelerate=accelerate, tol=1e-7).fit(reports)
    assert len(estimate.trace) > 3
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in pairwise(estimate.trace))


def test_the_bound_rises_where_channels_mix_and_hide_participation() -> None:
    family = Family("mixed", mixed=True, n_options=3, n_questions=150)
    answers, _ = family.draw(1)
    hidden = protected(choice_crowd(1, n_questions=80)[0], 1.0, 1, protect_participation=True)
    for reports in (family.report(answers, 1.0, 1), hidden):
        trace = HierarchicalDawidSkene().fit(reports).trace
        assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in pairwise(trace))


def test_the_evidence_is_that_of_the_dirichlet_multinomial_law() -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 6, (5, 3, 2)).astype(np.float64)
    base = rng.dirichlet(np.ones(3), 2).T
    law = Dirichlets(counts, base, np.full(3, 7.0), np.array([0]))
    for worker, evidence in enumerate(law.log_evidence()):
        expected = 0.0
        for truth in range(2):
            seen = counts[worker, :, truth]
            orders = gammaln(seen.sum() + 1) - gammaln(seen + 1).sum()
            expected += dirichlet_multinomial.logpmf(seen.astype(int), 7.0 * base[:, truth], int(seen.sum())) - orders
        assert evidence == pytest.approx(expected)


def test_minkas_fixed_point_finds_the_strength_that_workers_were_drawn_with() -> None:
    rng = np.random.default_rng(2)
    base = np.array([0.7, 0.3])
    chance = rng.dirichlet(12.0 * base, 4000)
    counts = np.stack([rng.multinomial(40, row) for row in chance]).astype(np.float64)[:, :, None]
    strength = 3.0
    for _ in range(300):
        law = Dirichlets(counts, base[:, None], np.full(2, strength), np.array([0]))
        _, strength = law.fit_strength(strength, np.ones(4000), median=5.0)
    assert strength == pytest.approx(12.0, rel=0.1)


def test_a_step_agrees_with_the_formulas_of_the_page() -> None:
    """One E-step and the bound, written out report by report."""
    answers, _ = choice_crowd(5, n_workers=6, n_questions=12, n_options=2, per_question=4)
    reports = protected(answers, 1.0, 5)
    model = HierarchicalDawidSkene(precision="float64").model(context_of(reports))
    parameters = model.init()
    crowd = Crowd.typical(2)
    strength = crowd.strength * model.reports_per_answer[0]
    base = crowd.mean @ reports.channels[0].table  # type: ignore[union-attr]
    attentive = digamma(strength * base) - digamma(strength)
    habit = crowd.habit_strength * model.reports_per_answer[0] * crowd.habit @ reports.channels[0].table  # type: ignore[union-attr]
    inattentive = digamma(habit) - digamma(habit.sum())
    expected = crowd.attentive * attentive.T + (1 - crowd.attentive) * inattentive[:, None]
    np.testing.assert_allclose(parameters["log_chance"], np.broadcast_to(expected, (6, 2, 2)), rtol=1e-9)
    estimate = HierarchicalDawidSkene(max_iter=1, tol=-1).fit(reports)
    logs = np.zeros((12, 2))
    for question, report in zip(reports.question, reports.report, strict=True):
        logs[question] += expected[report]
    likelihood = np.logaddexp.reduce(logs - np.log(2), axis=1).sum()
    assert estimate.trace[0] == pytest.approx(likelihood + float(parameters["bound"]))


def test_workers_who_do_not_attend_are_seen_and_do_not_count() -> None:
    family = Family("few experts", ((0.3, EXPERT), (0.3, GUESSER), (0.4, REPEATER)), per_question=12, n_questions=300)
    answers, truth = family.draw(7)
    reports = family.report(answers, 2.0, 7)
    estimate = HierarchicalDawidSkene().fit(reports)
    right = np.bincount(answers.worker, answers.answer == truth[answers.question], minlength=60)
    accuracy = right / np.maximum(np.bincount(answers.worker, minlength=60), 1)
    attentive = estimate.parameters["attentive"]
    assert attentive[accuracy > 0.85].mean() > attentive[accuracy < 0.7].mean() + 0.4
    gain = (estimate.value == truth).mean() - (Majority().fit(reports).value == truth).mean()
    assert gain > 0.05


def test_known_truths_hold() -> None:
    answers, truth = choice_crowd(4, n_options=3)
    gold = {question: f"option {(truth[question] + 1) % 3}" for question in range(10)}
    estimate = HierarchicalDawidSkene(gold=gold).fit(protected(answers, 1.0, 4))
    assert [estimate.values()[question] for question in range(10)] == list(gold.values())


def test_a_warm_start_ends_where_a_cold_one_does() -> None:
    answers, _ = choice_crowd(6)
    reports = protected(answers, 2.0, 6)
    cold = HierarchicalDawidSkene(tol=1e-9).fit(reports)
    warm = HierarchicalDawidSkene(tol=1e-9).fit(reports, cold)
    assert warm.iterations < cold.iterations
    assert not any("began anew" in warning for warning in warm.warnings)
    np.testing.assert_allclose(cold.posterior, warm.posterior, atol=0.02)


def test_a_table_that_does_not_fit_into_memory_is_refused() -> None:
    options = Choices(tuple(str(code) for code in range(1500)))
    empty = np.zeros(0, dtype=np.int32)
    reports = Reports.unprotected(Answers(empty, empty, empty, np.arange(200), np.arange(1), options))
    with pytest.raises(InputError, match="is too large"):
        HierarchicalDawidSkene().fit(reports)
