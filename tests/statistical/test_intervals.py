"""Intervals hold the truth as often as they say, and posteriors mean what they say, on crowds whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from inference.crowds import agreeing_crowd, choice_crowd, number_crowd, protected
from inference.families import calibration_error, drawn_scale, reported

from crowdveil import Answers, Choices, Reports, Scale
from crowdveil.entropy import entropy_from
from crowdveil.inference import method
from crowdveil.mechanisms import mechanism
from crowdveil.simulate import ChoiceCrowd

CROWDS = 5


@pytest.mark.parametrize("name", ["mean", "weighted-mean"])
@pytest.mark.parametrize(("epsilon", "per_question"), [(None, 8), (None, 30), (4.0, 30), (2.0, 300)])
def test_numeric_intervals_cover_between_90_and_98_in_100(name: str, epsilon: float | None, per_question: int) -> None:
    held = []
    for seed in range(CROWDS):
        answers, truth = number_crowd(seed, per_question=per_question, n_workers=max(60, per_question + 20))
        reports = Reports.unprotected(answers) if epsilon is None else protected(answers, epsilon, seed)
        estimate = method(name).fit(reports)
        held += ((estimate.low <= truth) & (truth <= estimate.high)).tolist()
    assert 0.90 <= np.mean(held) <= 0.98


@pytest.mark.parametrize(("epsilon", "per_question"), [(None, 30), (4.0, 30), (2.0, 100)])
def test_intervals_of_medians_cover_between_90_and_98_in_100(epsilon: float | None, per_question: int) -> None:
    held, width = [], []
    for seed in range(CROWDS):
        answers, truth = number_crowd(seed, per_question=per_question, n_workers=max(60, per_question + 20))
        estimate = method("median").fit(reported(answers, epsilon, seed))
        held += ((estimate.low <= truth) & (truth <= estimate.high)).tolist()
        width.append((estimate.high - estimate.low).mean())
    assert 0.90 <= np.mean(held) <= 0.98
    assert np.mean(width) < 12


def _held(
    name: str, crowd: Callable[[int], tuple[Answers, Any]], report: Callable[[Answers, int], Reports]
) -> tuple[float, float]:
    """How often the intervals of three crowds hold the truth, and how long they are."""
    held, width = [], []
    for seed in range(3):
        answers, truth = crowd(seed)
        estimate = method(name).fit(report(answers, seed))
        held += ((estimate.low <= truth) & (truth <= estimate.high)).tolist()
        width += (estimate.high - estimate.low).tolist()
    return float(np.mean(held)), float(np.mean(width))


@pytest.mark.parametrize(
    ("name", "most"), [("mean", 1.15), ("median", 1.0), ("weighted-mean", 1.15), ("channel-em", 0.75)]
)
def test_noise_does_not_hide_that_answers_were_rounded(name: str, most: float) -> None:
    held, width = _held(name, agreeing_crowd, lambda answers, seed: protected(answers, 4.0, seed))
    # Truths are anywhere within a level, and hardly anything tells where: that makes the length about one level.
    assert held >= 0.90
    assert width <= most


def test_those_who_answer_at_random_do_not_hide_that_answers_were_rounded() -> None:
    crowd = partial(agreeing_crowd, spam=0.15)
    held, width = _held("weighted-mean", crowd, lambda answers, seed: Reports.unprotected(answers))
    assert held >= 0.90
    assert width <= 1.15


@pytest.mark.parametrize(("spread", "per_question"), [(0.02, 30), (0.05, 10), (0.1, 30)])
def test_channel_em_does_not_take_agreement_for_truths_on_levels(spread: float, per_question: int) -> None:
    """Where it did, it held .17 to .80 of these."""
    crowd = partial(agreeing_crowd, per_question=per_question, spread=spread)
    held, width = _held("channel-em", crowd, partial(_reported, None))
    assert 0.90 <= held <= 0.98
    assert width <= 0.85


def test_where_errors_show_that_truths_are_levels_channel_em_says_so() -> None:
    held, width = _held("channel-em", partial(agreeing_crowd, spread=0.4, on_levels=True), partial(_reported, None))
    assert held >= 0.95
    assert width <= 0.2


@pytest.mark.parametrize("name", ["mean", "weighted-mean", "population-mean"])
@pytest.mark.parametrize(("epsilon", "per_question"), [(3.0, 8), (4.0, 30)])
def test_intervals_hold_where_participation_is_protected(name: str, epsilon: float, per_question: int) -> None:
    crowd = partial(number_crowd, per_question=per_question, n_questions=400)
    held, _ = _held(name, crowd, lambda answers, seed: protected(answers, epsilon, seed, protect_participation=True))
    assert 0.90 <= held <= 0.98


@pytest.mark.parametrize(("epsilon", "per_question"), [(None, 8), (1.0, 30), (2.0, 8)])
def test_medians_of_few_reports_do_not_hold_the_truth_more_often_than_they_say(
    epsilon: float | None, per_question: int
) -> None:
    held, _ = _held("median", partial(number_crowd, per_question=per_question), partial(_reported, epsilon))
    assert 0.93 <= held <= 0.985


def test_votes_that_noise_tears_apart_do_not_make_a_median_look_sure() -> None:
    crowd = partial(agreeing_crowd, per_question=5, n_levels=50)
    held, _ = _held("median", crowd, partial(_moved, 0.5))
    assert held >= 0.90


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_a_mean_of_one_report_is_no_surer_than_its_channel(epsilon: float) -> None:
    """Where no question has two reports the noise was left out, and .30 and .66 were held."""
    held, _ = _held("mean", partial(number_crowd, per_question=1), partial(_moved, epsilon))
    assert held >= 0.90


@pytest.mark.parametrize(("name", "n_answers"), [("mean", 2), ("mean", 3), ("median", 2)])
def test_a_single_question_is_not_its_own_crowd(name: str, n_answers: int) -> None:
    """Its variance counted as if it had been found elsewhere, too: .81, .86 and .81 were held."""
    held = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        truth, place = rng.uniform(0, 9), np.arange(n_answers)
        answer = np.clip(np.rint(truth + rng.standard_normal(n_answers)), 0, 9).astype(np.int32)
        found = method(name).fit(
            Reports.unprotected(Answers(place, np.zeros_like(place), answer, place, np.arange(1), Scale(0, 9)))
        )
        held.append(found.low[0] <= truth <= found.high[0])
    assert np.mean(held) >= 0.90


def _at_the_ends(seed: int) -> tuple[Answers, Any]:
    """Truths on any level of seven, the last ones included, and errors of a level and a half, which the ends cut."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 7, 300).astype(float)
    answer = np.clip(np.rint(truth[:, None] + 1.5 * rng.standard_normal((300, 30))), 0, 6).astype(np.int32).ravel()
    question, worker = (place.astype(np.int32).ravel() for place in np.indices((300, 30)))
    return Answers(worker, question, answer, np.arange(30), np.arange(300), Scale(0, 6)), truth


@pytest.mark.parametrize("name", ["mean", "median", "weighted-mean"])
@pytest.mark.parametrize("epsilon", [None, 4.0])
def test_truths_at_the_ends_of_a_scale_are_held(name: str, epsilon: float | None) -> None:
    held, _ = _held(name, _at_the_ends, partial(_reported, epsilon))
    assert 0.90 <= held <= 0.98


@pytest.mark.parametrize("per_question", [3, 5])
def test_a_median_knows_that_the_scale_cuts_the_answers_around_it(per_question: int) -> None:
    """Errors of two levels on five: both answers that its variance comes from are mostly at the ends (.89, .86)."""
    held, _ = _held("median", partial(agreeing_crowd, per_question=per_question, spread=2.0), partial(_reported, None))
    assert 0.90 <= held <= 0.985


@pytest.mark.parametrize("name", ["mean", "weighted-mean"])
def test_truths_at_the_ends_are_held_where_participation_is_protected(name: str) -> None:
    held, _ = _held(name, _at_the_ends, lambda answers, seed: protected(answers, 4.0, seed, protect_participation=True))
    assert 0.90 <= held <= 0.98


def test_channel_em_does_not_leave_out_the_ends_of_the_scale_where_reports_tell_little() -> None:
    noisy = mechanism("discrete-gaussian", epsilon=0.5)
    held, width = _held("channel-em", _at_the_ends, lambda answers, seed: noisy.randomize(answers, entropy_from(seed)))
    assert held >= 0.90
    assert width <= 7


@pytest.mark.parametrize("seed", [50008, 50019])
def test_noise_with_heavy_tails_rules_out_no_median(seed: int) -> None:
    """A rule that took such noise for normal held .58 and .63 of these."""
    answers, truth = drawn_scale(seed)
    estimate = method("median").fit(_moved(1.0, answers, seed))
    assert ((estimate.low <= truth) & (truth <= estimate.high)).mean() >= 0.9


def _moved(epsilon: float, answers: Answers, seed: int) -> Reports:
    return mechanism("discrete-laplace", epsilon=epsilon).randomize(answers, entropy_from(seed))


def _reported(epsilon: float | None, answers: Answers, seed: int) -> Reports:
    return reported(answers, epsilon, seed)


@pytest.mark.parametrize("name", ["dawid-skene", "one-coin"])
@pytest.mark.parametrize("epsilon", [None, 2.0, 1.0])
def test_posteriors_are_calibrated(name: str, epsilon: float | None) -> None:
    errors = []
    for seed in range(CROWDS):
        answers, truth = choice_crowd(
            seed, n_options=2, n_workers=100, n_questions=1000, per_question=10, skill=(0.55, 0.95)
        )
        fitted = method(name).fit(reported(answers, epsilon, seed))
        errors.append(calibration_error(fitted.confidence, fitted.value == truth))
    assert np.mean(errors) <= 0.05


LOPSIDED = {"a": 0.8, "b": 0.07, "c": 0.07, "d": 0.06}


@pytest.mark.parametrize("name", ["dawid-skene", "channel-bp"])
@pytest.mark.parametrize("epsilon", [None, 2.0, 1.0])
@pytest.mark.parametrize(
    ("shares", "ability", "share"),
    [
        (LOPSIDED, (0.45, 0.95), 0.2),
        ({"a": 0.5, "b": 0.5}, (0.5, 0.8), 0.08),
        ({"a": 0.9, "b": 0.1}, (0.55, 0.95), 0.1),
    ],
    ids=["one class of four", "weak and sparse", "one class of two"],
)
def test_posteriors_are_calibrated_where_classes_or_answers_are_scarce(
    name: str, epsilon: float | None, shares: dict[str, float], ability: tuple[float, float], share: float
) -> None:
    recipe = ChoiceCrowd(
        n_workers=80,
        n_questions=250,
        domain=Choices(tuple(shares)),
        ability=ability,
        share=share,
        class_shares=tuple(shares.values()),
    )
    crowds = [recipe.draw(seed) for seed in range(6)]
    fits = [method(name).fit(reported(crowd.answers, epsilon, seed)) for seed, crowd in enumerate(crowds)]
    confidence = np.concatenate([fit.confidence for fit in fits])
    right = np.concatenate([fit.value == crowd.truth for fit, crowd in zip(fits, crowds, strict=True)])
    # Over 72 crowds channel-bp at ε = 1 and one class of two has .071 (.067 with other draws); six vary around it.
    hardest = name == "channel-bp" and epsilon == 1.0 and len(shares) == 2 and max(shares.values()) > 0.5
    assert calibration_error(confidence, right) <= (0.08 if hardest else 0.05)


@pytest.mark.parametrize("epsilon", [None, 2.0])
def test_skill_intervals_of_channel_bp_hold_the_skill_between_its_kinds(epsilon: float | None) -> None:
    """Its kinds of workers are few, and a skill lies between two of them; 25 and 100 answers a worker."""
    held = []
    for seed in range(CROWDS):
        kind = {"n_questions": (500, 2000)[seed % 2], "ability": (0.5, 0.98), "share": 0.05}
        crowd = ChoiceCrowd(n_workers=100, domain=Choices(("a", "b")), **kind).draw(seed)
        skills = method("channel-bp").fit(reported(crowd.answers, epsilon, seed)).skills
        assert skills is not None
        # Ids stand in the order in which they first answered.
        skill = dict(zip(crowd.answers.workers.tolist(), crowd.skill.tolist(), strict=True))
        right = np.array([skill[worker] for worker in skills.workers.tolist()])
        held += ((skills.low <= right) & (right <= skills.high)).tolist()
    assert np.mean(held) >= 0.92


@pytest.mark.parametrize("name", ["dawid-skene", "one-coin"])
def test_skill_intervals_hold_the_skill(name: str) -> None:
    held = []
    for seed in range(CROWDS):
        answers, truth = choice_crowd(seed, n_options=2, n_questions=500, skill=(0.6, 0.95))
        right = np.bincount(answers.worker, answers.answer == truth[answers.question]) / np.bincount(answers.worker)
        skills = method(name).fit(Reports.unprotected(answers)).skills
        assert skills is not None
        held += ((skills.low <= right) & (right <= skills.high)).tolist()
    assert np.mean(held) >= 0.9
