"""Channel-aware methods: intervals hold the truth as often as they say, probabilities mean what they say."""

from __future__ import annotations

import numpy as np
import pytest
from inference.families import calibration_error

from crowdveil import Answers, Choices, Reports, Scale
from crowdveil.entropy import entropy_from
from crowdveil.inference import method
from crowdveil.mechanisms import mechanism
from crowdveil.simulate import ChoiceCrowd, ScaleCrowd


def reports_of(answers: Answers, epsilon: float | None, seed: int, *, hidden: bool = False) -> Reports:
    if epsilon is None:
        return Reports.unprotected(answers)
    chosen = mechanism("randomized-response", epsilon=epsilon, protect_participation=hidden)
    return chosen.randomize(answers, entropy_from(seed))


@pytest.mark.parametrize("truth", ["uniform", "middle"])
@pytest.mark.parametrize(
    ("epsilon", "hidden", "share"), [(None, False, 0.1), (None, False, 0.5), (3.0, False, 0.3), (3.0, True, 0.4)]
)
def test_credible_intervals_of_channel_em(truth: str, epsilon: float | None, hidden: bool, share: float) -> None:
    held = []
    for seed in range(5):
        recipe = ScaleCrowd(n_workers=150, n_questions=100, domain=Scale(0, 9), share=share, truth=truth)
        crowd = recipe.draw(seed)
        estimate = method("channel-em").fit(reports_of(crowd.answers, epsilon, seed, hidden=hidden))
        held += ((estimate.low <= crowd.truth) & (crowd.truth <= estimate.high)).tolist()
    assert 0.90 <= np.mean(held) <= 0.98


def test_channel_em_resolves_far_below_its_grid() -> None:
    recipe = ScaleCrowd(n_workers=2000, n_questions=40, domain=Scale(0, 9), share=1.0, truth="uniform")
    crowd = recipe.draw(4)
    estimate = method("channel-em").fit(Reports.unprotected(crowd.answers))
    assert np.abs(estimate.value - crowd.truth).mean() < 0.05
    assert ((estimate.low <= crowd.truth) & (crowd.truth <= estimate.high)).mean() >= 0.88


@pytest.mark.parametrize("epsilon", [1.0, 2.0, None])
@pytest.mark.parametrize("n_options", [2, 4])
@pytest.mark.parametrize("bias", [0.0, 0.2])
def test_posteriors_of_channel_bp_are_calibrated(epsilon: float | None, n_options: int, bias: float) -> None:
    confidence, right = [], []
    for seed in range(6):
        domain = Choices(tuple("abcd"[:n_options]))
        recipe = ChoiceCrowd(n_workers=80, n_questions=250, domain=domain, ability=(0.45, 0.95), bias=bias, share=0.2)
        crowd = recipe.draw(seed)
        estimate = method("channel-bp").fit(reports_of(crowd.answers, epsilon, seed))
        confidence.append(estimate.confidence)
        right.append(estimate.value == crowd.truth)
    assert calibration_error(np.concatenate(confidence), np.concatenate(right)) <= 0.05


@pytest.mark.parametrize("hidden", [False, True])
def test_channel_bp_does_not_collapse_on_balanced_classes_under_strong_privacy(hidden: bool) -> None:
    for seed in range(5):
        domain = Choices(("no", "yes"))
        crowd = ChoiceCrowd(n_workers=60, n_questions=200, domain=domain, ability=(0.5, 0.9), bias=0.2).draw(seed)
        estimate = method("channel-bp").fit(reports_of(crowd.answers, 0.5, seed, hidden=hidden))
        if estimate.floor is not None and estimate.floor.informative:
            assert 0.15 < (estimate.value == 0).mean() < 0.85


@pytest.mark.parametrize(("epsilon", "hidden"), [(None, False), (1.0, False), (1.0, True)])
def test_confidence_intervals_of_frequency(epsilon: float | None, hidden: bool) -> None:
    shares, rng = np.array([0.6, 0.3, 0.1]), np.random.default_rng(5)
    n_workers, n_questions = 600, 400
    grid = rng.choice(3, size=(n_workers, n_questions), p=shares)
    worker, question = (place.ravel().astype(np.int32) for place in np.indices(grid.shape))
    given = rng.random(grid.size) < (0.7 if hidden else 1.0)
    answers = Answers(
        worker[given],
        question[given],
        grid.ravel()[given],
        np.arange(n_workers),
        np.arange(n_questions),
        Choices(("a", "b", "c")),
    )
    estimate = method("frequency").fit(reports_of(answers, epsilon, 9, hidden=hidden))
    held = (estimate.parameters["low"] <= shares) & (shares <= estimate.parameters["high"])
    # The three shares of a question depend on each other; only questions count as independent.
    assert held.mean() == pytest.approx(0.95, abs=5 * np.sqrt(0.95 * 0.05 / n_questions))
    np.testing.assert_allclose(estimate.posterior.mean(axis=0), shares, atol=0.02)


@pytest.mark.parametrize(
    ("n_reports", "n_options", "epsilon"), [(3, 20, None), (3, 2, None), (10, 5, 4.0), (20, 20, 1.0)]
)
def test_intervals_of_shares_hold_where_reports_are_few(n_reports: int, n_options: int, epsilon: float | None) -> None:
    """Normal bounds held .87, .77, .89 and .96 of all shares, and .57, .77, .96 and .01 of those of the commonest."""
    rng, n_questions = np.random.default_rng(11), 1000
    grid = rng.integers(0, n_options, size=(n_reports, n_questions))
    worker, question = (place.ravel().astype(np.int32) for place in np.indices(grid.shape))
    ids, domain = (np.arange(n_reports), np.arange(n_questions)), Choices(tuple(map(str, range(n_options))))
    estimate = method("frequency").fit(reports_of(Answers(worker, question, grid.ravel(), *ids, domain), epsilon, 11))
    share = 1 / n_options
    lows, highs = estimate.parameters["low"], estimate.parameters["high"]
    assert ((lows <= share) & (share <= highs)).mean() >= 0.93
    assert ((estimate.low <= share) & (share <= estimate.high)).mean() >= 0.93
    assert (estimate.low <= lows[np.arange(n_questions), estimate.value]).all()


@pytest.mark.parametrize("hidden", [False, True])
def test_shares_of_a_mixed_crowd_are_those_of_all_its_people(hidden: bool) -> None:
    """Levels of privacy that think differently: every worker counts once, however noisy their reports are."""
    rng, n_workers, n_questions = np.random.default_rng(6), 900, 100
    level = np.arange(n_workers) % 3
    opinions = np.array([[0.7, 0.2, 0.1], [0.4, 0.4, 0.2], [0.1, 0.3, 0.6]])
    grid = (rng.random((n_workers, n_questions, 1)) > np.cumsum(opinions, axis=1)[level, None, :2]).sum(axis=2)
    worker, question = (place.ravel().astype(np.int32) for place in np.indices(grid.shape))
    ids = np.arange(n_workers), np.arange(n_questions)
    answers = Answers(worker, question, grid.ravel(), *ids, Choices(("a", "b", "c")))
    estimate = method("frequency").fit(mixed_reports(answers, level, (6.0, 3.0, 1.5), 4, hidden=hidden))
    people = opinions.mean(axis=0)
    held = (estimate.parameters["low"] <= people) & (people <= estimate.parameters["high"])
    assert held.mean() == pytest.approx(0.96, abs=5 * np.sqrt(0.95 * 0.05 / n_questions))
    np.testing.assert_allclose(estimate.posterior.mean(axis=0), people, atol=0.015)


def by_level(shift: float, seed: int) -> tuple[Reports, float]:
    """300 workers at three levels of privacy, each thinking higher by `shift`; and the population's mean."""
    rng = np.random.default_rng(seed)
    level = np.arange(300) % 3
    opinion = np.clip(np.rint(rng.normal(3, 0.9, (300, 30)) + shift * (level - 1)[:, None]), 1, 5).astype(int)
    worker, question = (place.ravel().astype(np.int32) for place in np.indices(opinion.shape))
    answers = Answers(worker, question, opinion.ravel() - 1, np.arange(300), np.arange(30), Scale(1, 5))
    return mixed_reports(answers, level, (5.0, 2.0, 1.0), seed), 3.0


def mixed_reports(
    answers: Answers, level: np.ndarray, epsilons: tuple[float, ...], seed: int, *, hidden: bool = False
) -> Reports:
    """Each worker's reports at the ε of their level."""
    tables = [reports_of(answers, epsilon, seed + place, hidden=hidden) for place, epsilon in enumerate(epsilons)]
    kept = [table.rows(np.flatnonzero(level[table.worker] == index)) for index, table in enumerate(tables)]
    return Reports(
        *(np.concatenate([getattr(table, name) for table in kept]) for name in ("worker", "question", "report")),
        np.repeat(np.arange(len(tables), dtype=np.int16), [len(table) for table in kept]),
        answers.workers,
        answers.questions,
        tuple(table.channels[0] for table in tables),
        answers.domain,
    )


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_intervals_of_the_population_mean_hold_whether_or_not_levels_think_alike(shift: float) -> None:
    held, widths = [], []
    for seed in range(20):
        reports, mean = by_level(shift, seed)
        estimate = method("population-mean").fit(reports)
        held += ((estimate.low <= mean) & (mean <= estimate.high)).tolist()
        widths.append((estimate.high - estimate.low).mean())
    assert 0.90 <= np.mean(held) <= 0.98
    plain = method("mean").fit(by_level(shift, 0)[0])
    assert shift > 0 or np.mean(widths) < 0.6 * (plain.high - plain.low).mean()
