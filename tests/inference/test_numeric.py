"""Methods for numbers: Sun's Algorithm 1 descends, medians are medians, and noise does not pull to the middle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inference.crowds import number_crowd, protected

from crowdveil import Answers, Choices, InputError, Reports, Scale
from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.guarantee import Guarantee
from crowdveil.inference import Mean, Median, WeightedMean
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.engine.em import run
from crowdveil.inference.engine.local import LocalEngine

LEVELS = Scale(0, 50)


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=5), min_size=2, max_size=6), st.integers(0, 99))
@settings(max_examples=60)
def test_the_sum_of_distances_never_rises(answers: list[list[int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [
        (worker, question, answer)
        for worker, given_answers in enumerate(answers)
        for question, answer in zip(rng.permutation(5), given_answers, strict=False)
    ]
    fitted = WeightedMean(max_iter=400, tol=1e-12).fit(Reports.unprotected(Answers.from_rows(rows, LEVELS)))
    assert (np.diff(fitted.trace) <= 1e-9 * (1 + fitted.trace[0])).all()


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=9), min_size=1, max_size=3))
@settings(max_examples=60)
def test_one_answer_per_worker_gives_the_median(answers: list[list[int]]) -> None:
    rows = [
        (f"{question}.{number}", question, answer)
        for question, given_answers in enumerate(answers)
        for number, answer in enumerate(given_answers)
    ]
    fitted = WeightedMean(max_iter=5000, tol=1e-13).fit(Reports.unprotected(Answers.from_rows(rows, LEVELS)))
    for value, given_answers in zip(fitted.value, answers, strict=True):
        ranked = sorted(given_answers)
        middle = ranked[(len(ranked) - 1) // 2], ranked[len(ranked) // 2]
        assert middle[0] - 0.01 <= value <= middle[1] + 0.01


def test_careless_workers_count_less() -> None:
    answers, truth = number_crowd(1, spread=(0.3, 6))
    reports = Reports.unprotected(answers)
    errors = {kind.name: np.abs(kind().fit(reports).value - truth).mean() for kind in (Mean, Median, WeightedMean)}
    assert errors["weighted-mean"] < errors["mean"]
    assert errors["weighted-mean"] < errors["median"]


@pytest.mark.parametrize("kind", [Mean, WeightedMean])
def test_noise_is_taken_out_and_not_averaged_in(kind: type[Mean | WeightedMean]) -> None:
    answers, truth = number_crowd(2, n_questions=40, n_workers=400, per_question=300)
    reports = protected(answers, 4.0, 3)
    unbiased, raw = kind().fit(reports), kind(as_answers=True).fit(reports)
    assert abs((unbiased.value - truth).mean()) < 0.25
    pull = np.polyfit(truth, unbiased.value, 1)[0], np.polyfit(truth, raw.value, 1)[0]
    assert pull[0] == pytest.approx(1, abs=0.15)
    assert pull[1] < 0.85


@pytest.mark.parametrize("kind", [Mean, Median])
def test_participation_that_is_protected_is_divided_out(kind: type[Mean | Median]) -> None:
    answers, truth = number_crowd(3, n_questions=20, n_workers=600, per_question=300)
    fitted = kind().fit(protected(answers, 5.0, 4, protect_participation=True))
    assert np.abs(fitted.value - truth).mean() < 1.2


def test_as_answers_leaves_empty_reports_out() -> None:
    answers, _ = number_crowd(4, n_questions=10, n_workers=40, per_question=20)
    reports = protected(answers, 20.0, 5, protect_participation=True)
    raw, plain = Mean(as_answers=True).fit(reports), Mean().fit(Reports.unprotected(answers))
    np.testing.assert_allclose(raw.value, plain.value, atol=1e-6)


def test_reports_read_as_answers_are_tallied_as_they_are() -> None:
    reports = protected(number_crowd(4, n_questions=10, n_workers=40, per_question=20)[0], 1.0, 5)
    columns, context = {"value": np.zeros(10)}, table_context(reports)
    squares = np.bincount(reports.worker, reports.domain.numbers[reports.report] ** 2)
    np.testing.assert_allclose(Mean(as_answers=True).tally(reports, columns, context)["squares"], squares)
    assert (Mean().tally(reports, columns, context)["squares"] > squares).any()


@pytest.mark.parametrize("kind", [Mean, Median])
def test_a_centre_found_block_by_block_is_that_of_the_whole_table(kind: type[Mean | Median]) -> None:
    reports = protected(number_crowd(4, n_questions=10, n_workers=40, per_question=20)[0], 3.0, 5)
    model, whole = kind().model(table_context(reports)), kind().fit(reports)
    session = LocalEngine(threads=1).open(model, reports)
    found = session.finish(run(model, session, max_iter=kind.max_iter, tol=kind.tol, accelerate=False).parameters)
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(found[name], getattr(whole, name))
    assert whole.provenance["posterior"] is None


def test_noisy_numbers_of_research_mechanisms_are_read_as_they_are() -> None:
    rng = np.random.default_rng(5)
    answers, truth = number_crowd(5, per_question=40)
    record = NoiseRecord("laplace", 8.0, Guarantee("value", 1.0, 0.5, research_only=True))
    noisy = answers.answer + rng.laplace(scale=2, size=len(answers))
    empty, only = np.full(len(answers), -1), np.zeros(len(answers), dtype=np.int16)
    reports = Reports(
        answers.worker, answers.question, empty, only, answers.workers, answers.questions,
        (record,), answers.domain, noisy,
    )  # fmt: skip
    for kind in (Mean, Median, WeightedMean):
        assert np.abs(kind().fit(reports).value - truth).mean() < 1.0


def test_a_warm_start_gives_the_cold_weighted_mean() -> None:
    reports = Reports.unprotected(number_crowd(6)[0])
    old = WeightedMean().fit(reports.rows(np.flatnonzero(reports.question < 130)))
    cold, warm = WeightedMean().fit(reports), WeightedMean().fit(reports, old)
    np.testing.assert_allclose(warm.value, cold.value, atol=1e-2)
    assert warm.iterations < cold.iterations


@pytest.mark.parametrize("kind", [Mean, Median, WeightedMean])
def test_words_are_refused(kind: type[Mean]) -> None:
    reports = Reports.unprotected(Answers.from_rows([("ada", "q", "yes")], Choices(("no", "yes"))))
    with pytest.raises(InputError, match="needs numbers"):
        kind().fit(reports)


def test_options_that_are_numbers_are_read_as_numbers() -> None:
    rows = [("ada", "q", "10"), ("bob", "q", "-2.5")]
    reports = Reports.unprotected(Answers.from_rows(rows, Choices(("-2.5", "10"))))
    assert Mean().fit(reports).values() == [3.75]


@pytest.mark.parametrize("kind", [Mean, Median, WeightedMean])
def test_the_floor_is_below_the_error_and_above_it_nothing_can_be_learned(kind: type[Mean]) -> None:
    answers, truth = number_crowd(7, per_question=40)
    for reports in (Reports.unprotected(answers), protected(answers, 3.0, 1)):
        fitted = kind().fit(reports)
        assert fitted.floor is not None
        assert fitted.floor.smallest_error <= np.sqrt(np.square(fitted.value - truth).mean()) * 1.1
    hopeless = kind().fit(protected(number_crowd(7, per_question=3)[0], 0.1, 1))
    assert hopeless.floor is not None
    assert not hopeless.floor.informative


def test_skills_of_weighted_mean_know_how_little_few_workers_a_question_tell() -> None:
    """With two workers a question half of what each report tells goes into the question's own mean."""
    rng = np.random.default_rng(9)
    worker = np.concatenate([rng.choice(40, 2, replace=False) for _ in range(400)])
    question, spread = np.repeat(np.arange(400), 2), rng.uniform(1, 3, 40)
    answer = np.clip(np.rint(rng.normal(50, spread[worker])), 0, 100).astype(np.int32)
    reports = Reports.unprotected(Answers(worker, question, answer, np.arange(40), np.arange(400), Scale(0, 100)))
    skills = WeightedMean().fit(reports).skills
    assert skills is not None
    n_reports = np.bincount(worker, minlength=40)
    # The interval of a spread known by n squares is about ± spread / √(2n) times two: here n is half the reports.
    length = (skills.high - skills.low) / skills.skill
    assert (length > 0.9 * 4 / np.sqrt(2 * (0.75 * n_reports + 4))).all()
