"""How unevenly options are named, and what that is for: a common class is not held back as if it were noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, chisquare

from crowdveil import Answers, Choices, Reports
from crowdveil.entropy import entropy_from
from crowdveil.inference import ChannelBP, Majority
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.models.message_passing import reading
from crowdveil.inference.models.worker_type import SETTLING
from crowdveil.inference.observations.likelihood import build_emission
from crowdveil.inference.uncertainty.score_test import score_excess
from crowdveil.mechanisms import mechanism
from crowdveil.simulate import ChoiceCrowd

FOUR = Choices(("a", "b", "c", "d"))
SMALL = ChoiceCrowd(n_workers=5, n_questions=5, domain=FOUR, share=1.0).draw(1)


def lopsided(seed: int) -> tuple[Reports, np.ndarray]:
    """Nine in ten questions have the first of four options as their truth, nobody leans, and ε = 1."""
    shares = (0.91, 0.03, 0.03, 0.03)
    kind = ChoiceCrowd(
        n_workers=60, n_questions=1000, domain=FOUR, ability=(0.6, 0.95), share=5 / 60, class_shares=shares
    )
    crowd = kind.draw(seed)
    return mechanism("randomized-response", epsilon=1).randomize(crowd.answers, entropy_from(seed)), crowd.truth


def test_without_noise_it_is_what_pearsons_statistic_has_beyond_its_quantile() -> None:
    emission = reading(table_context(Reports.unprotected(SMALL.answers)))
    symbols = np.array([2600.0, 2400.0, 2450.0, 2550.0])
    beyond = np.sqrt(chisquare(symbols).statistic) - np.sqrt(chi2.ppf(0.95, 3))
    # Pearson takes the variance from even shares, the score statistic from the counts: nearly the same here.
    assert score_excess(symbols, emission) == pytest.approx(beyond**2 / 3, rel=0.02)
    assert score_excess(symbols, emission, alike=4) == 0


def test_even_options_look_uneven_in_one_of_twenty() -> None:
    rng = np.random.default_rng(5)
    reports = mechanism("randomized-response", epsilon=1).randomize(SMALL.answers, entropy_from(1))
    emission = reading(table_context(reports))
    found = [score_excess(rng.multinomial(2000, [0.25] * 4).astype(float), emission) > 0 for _ in range(4000)]
    assert np.mean(found) == pytest.approx(0.05, abs=5 * np.sqrt(0.05 * 0.95 / 4000))


def test_rounding_is_not_taken_for_unevenness_where_reports_tell_next_to_nothing() -> None:
    channel = mechanism("subset-selection", epsilon=1e-9).channel(FOUR)
    assert score_excess(np.array([330.0, 340, 320, 350, 310, 350]), build_emission((channel,), 4)) == 0


def test_a_common_class_is_found_where_nobody_leans() -> None:
    """Held near even shares as if it were noise, it made the wrong explanation win: .47 right, the vote .62."""
    found = [
        [(method.fit(reports).value == truth).mean() for method in (ChannelBP(), Majority())]
        for reports, truth in map(lopsided, range(8))
    ]
    ours, vote = np.mean(found, axis=0)
    assert ours > vote + 0.1


def test_what_only_the_next_sweep_needs_is_not_kept() -> None:
    reports, _ = lopsided(1)
    kept = set(ChannelBP().fit(reports).parameters)
    assert not {name for name in kept if name.startswith(("before", "reach", "held", "answers"))}
    assert {"belief", "share", "class_explanation_weight"} <= kept


@pytest.mark.parametrize("epsilon", [None, 4.0])
@pytest.mark.parametrize("n_options", [3, 5])
def test_a_common_class_whose_errors_go_to_one_option_is_not_taken_for_a_leaning_crowd(
    n_options: int, epsilon: float | None
) -> None:
    """Workers alike, right in three of five cases; four of five errors name the next option; three answers each."""
    gains = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = np.where(rng.random(500) < 0.9, 1, rng.integers(0, n_options, 500))
        worker = np.concatenate([rng.choice(60, 3, replace=False) for _ in range(500)])
        question = np.repeat(np.arange(500), 3)
        step = np.where(rng.random(1500) < 0.8, 1, rng.integers(1, n_options, 1500))
        answer = (truth[question] + np.where(rng.random(1500) < 0.6, 0, step)) % n_options
        answers = Answers(worker, question, answer, np.arange(60), np.arange(500), Choices(tuple("abcde"[:n_options])))
        chosen = mechanism("none") if epsilon is None else mechanism("randomized-response", epsilon=epsilon)
        reports = chosen.randomize(answers, entropy_from(seed))
        gains.append((ChannelBP().fit(reports).value == truth).mean() - (Majority().fit(reports).value == truth).mean())
    assert min(gains) > 0.1


def test_nothing_rests_before_leanings_are_believed_in_and_every_sweep_is_told_of() -> None:
    rows = [(worker, f"q{n}", "abc"[n % 3]) for worker in "uvw" for n in range(9)]
    answers = Answers.from_rows(rows, Choices(("a", "b", "c")))
    estimate = ChannelBP().fit(Reports.unprotected(answers))
    assert estimate.converged
    assert estimate.iterations > SETTLING + 1
    assert len(estimate.trace) == estimate.iterations - 1
