"""Dawid–Skene is what Dawid and Skene wrote down, with the prior, the channel and the gold where they belong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from inference.crowds import choice_crowd, protected
from numpy.typing import NDArray

from crowdveil import Answers, Choices, InputError, Reports
from crowdveil.inference import DawidSkene, Majority, OneCoin, method
from crowdveil.inference.engine.local import LocalEngine
from crowdveil.inference.kernels import layout
from crowdveil.inference.observations import likelihood as emission
from crowdveil.inference.uncertainty.summaries import odds_interval

PURE = {"prior": "none"}


def by_the_book(answers: Answers, n_iter: int) -> NDArray[np.float64]:
    """EM over a dense table, written as the textbook has it; a count is at least 1e-10, as in crowd-kit."""
    n_workers, n_questions, k = len(answers.workers), len(answers.questions), answers.domain.size
    given = np.zeros((n_workers, n_questions, k))
    given[answers.worker, answers.question, answers.answer] = 1
    posterior = given.sum(axis=0) / given.sum(axis=(0, 2))[:, None]
    for _ in range(n_iter):
        counts = np.einsum("wqa,qt->wat", given, posterior)
        seen = given.sum(axis=1) > 0
        counts = np.where(seen[:, :, None], np.maximum(counts, 1e-10), 0)
        confusion = counts / counts.sum(axis=1, keepdims=True)
        logs = np.einsum("wqa,wat->qt", given, np.log(np.where(confusion > 0, confusion, 1)))
        logs = logs + np.log(np.maximum(posterior.mean(axis=0), 1e-10))
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_iter", [1, 7])
def test_without_prior_it_is_em_by_the_book(seed: int, n_iter: int) -> None:
    answers, _ = choice_crowd(seed, n_options=2 + seed)
    fitted = DawidSkene(max_iter=n_iter, tol=-1.0, precision="float64", **PURE).fit(Reports.unprotected(answers))
    assert fitted.posterior is not None
    np.testing.assert_allclose(fitted.posterior, by_the_book(answers, n_iter), atol=1e-8)


def test_bounds_hold_the_probability_without_a_prior_too() -> None:
    reports = Reports.unprotected(choice_crowd(12, n_options=4, n_questions=30)[0])
    with np.errstate(all="raise", under="ignore"):
        fitted = DawidSkene(**PURE).fit(reports)
    assert (fitted.low <= fitted.confidence + 1e-6).all()
    assert (fitted.high >= fitted.confidence - 1e-6).all()
    assert (fitted.low < fitted.high).any()


def test_single_precision_gives_the_same_labels() -> None:
    reports = Reports.unprotected(choice_crowd(1)[0])
    single, double = (DawidSkene(precision=precision).fit(reports) for precision in ("float32", "float64"))
    assert single.value.tolist() == double.value.tolist()


@pytest.mark.parametrize("epsilon", [None, 1.0, 3.0])
@pytest.mark.parametrize("kind", [DawidSkene, OneCoin])
def test_the_objective_never_falls(kind: type[DawidSkene | OneCoin], epsilon: float | None) -> None:
    answers, _ = choice_crowd(2)
    reports = Reports.unprotected(answers) if epsilon is None else protected(answers, epsilon, 5)
    fitted = kind(precision="float64", max_iter=60, tol=0.0).fit(reports)
    assert len(fitted.trace) > 5
    assert (np.diff(fitted.trace) >= -1e-9 * np.abs(fitted.trace[0])).all()
    assert fitted.warnings == () or not fitted.converged


def test_participation_that_is_protected_is_read_through_the_channel() -> None:
    answers, truth = choice_crowd(3, n_workers=60, n_questions=80, per_question=30)
    reports = protected(answers, 3.0, 1, protect_participation=True)
    fitted = DawidSkene(precision="float64").fit(reports)
    assert (np.diff(fitted.trace) >= -1e-9 * np.abs(fitted.trace[0])).all()
    assert (fitted.value == truth).mean() > (Majority().fit(reports).value == truth).mean() - 0.05
    assert (fitted.value == truth).mean() > 0.8


def test_only_the_cells_that_occur_give_the_same_as_all_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = protected(choice_crowd(4)[0], 1.5, 2)
    all_cells = [kind(precision="float64").fit(reports).posterior for kind in (DawidSkene, OneCoin)]
    monkeypatch.setattr(emission, "_CHUNK", 64)
    compact = layout.build_layout

    def only_seen(block, symbol, n_symbols, n_workers, n_options):
        # Pretend there are so many workers that most cells stay empty.
        return compact(block, symbol, n_symbols, n_workers * 1000, n_options)

    monkeypatch.setattr("crowdveil.inference.models.categorical_em.build_layout", only_seen)
    seen_cells = [kind(precision="float64").fit(reports).posterior for kind in (DawidSkene, OneCoin)]
    for ours, theirs in zip(all_cells, seen_cells, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_gold_questions_stay_what_they_are_and_help_the_others() -> None:
    answers, truth = choice_crowd(5, n_options=2, skill=(0.05, 0.45), n_questions=100)
    reports = Reports.unprotected(answers)
    gold = {question: f"option {truth[question]}" for question in range(30)}
    with_gold, without = DawidSkene(gold=gold).fit(reports), DawidSkene().fit(reports)
    assert with_gold.value[:30].tolist() == truth[:30].tolist()
    # Most of these workers are wrong: only the gold can tell.
    assert (with_gold.value[30:] == truth[30:]).mean() > 0.9 > (without.value[30:] == truth[30:]).mean()


def test_history_is_a_prior_in_every_iteration() -> None:
    answers, truth = choice_crowd(6, n_options=2, skill=(0.05, 0.45), n_questions=60)
    liar = np.array([[20.0, 80.0], [80.0, 20.0]])
    history = dict.fromkeys(range(40), 10 * liar)
    fitted = DawidSkene(history=history).fit(Reports.unprotected(answers))
    assert (fitted.value == truth).mean() > 0.9


@pytest.mark.parametrize("kind", [DawidSkene, OneCoin])
@pytest.mark.parametrize("n_options", [2, 4])
def test_it_does_not_collapse_to_one_class_under_strong_privacy(kind: type[DawidSkene], n_options: int) -> None:
    answers, _ = choice_crowd(7, n_options=n_options, n_questions=300, per_question=10)
    fitted = kind().fit(protected(answers, 0.5, 3))
    assert np.bincount(fitted.value, minlength=n_options).max() < 0.75 * 300


@pytest.mark.parametrize("kind", [DawidSkene(**PURE), OneCoin()], ids=lambda kind: kind.name)
def test_acceleration_reaches_the_same_top(kind: DawidSkene | OneCoin) -> None:
    reports = Reports.unprotected(choice_crowd(8, skill=(0.35, 0.7))[0])
    plain, fast = (
        replace(kind, accelerate=leap, precision="float64", max_iter=2000, tol=1e-12).fit(reports)
        for leap in (False, True)
    )
    assert fast.trace[-1] == pytest.approx(plain.trace[-1], rel=1e-6)
    assert fast.iterations < plain.iterations
    assert (np.diff(fast.trace) >= -1e-9 * np.abs(fast.trace[0])).all()


@pytest.mark.parametrize("kind", [DawidSkene, OneCoin])
@pytest.mark.parametrize("seed", range(5))
def test_a_warm_start_gives_the_cold_result_in_fewer_iterations(kind: type[DawidSkene], seed: int) -> None:
    reports = Reports.unprotected(choice_crowd(seed, n_questions=1000)[0])
    old = kind().fit(reports.rows(np.flatnonzero(reports.question < 900)))
    cold, warm = kind().fit(reports), kind().fit(reports, old)
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.posterior, cold.posterior, atol=0.02)
    assert (warm.value == cold.value).mean() > 0.998


def test_a_warm_start_takes_workers_it_never_met() -> None:
    reports = Reports.unprotected(choice_crowd(10, n_questions=1000)[0])
    early = reports.rows(np.flatnonzero(reports.worker < 30))
    old = DawidSkene().fit(replace(early, workers=early.workers[:30]))
    warm, cold = DawidSkene().fit(reports, old), DawidSkene().fit(reports)
    np.testing.assert_allclose(warm.posterior, cold.posterior, atol=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_a_rich_table_whose_options_are_rare_leans_on_the_crowd(seed: int) -> None:
    """Of five options one is the truth of nine questions in ten, and errors go to the next one: 83 answers a worker."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(500) < 0.9, 0, rng.integers(1, 5, 500))
    worker = np.concatenate([rng.choice(60, 10, replace=False) for _ in range(500)])
    question = np.repeat(np.arange(500), 10)
    wrong = (truth[question] + np.where(rng.random(5000) < 0.8, 1, rng.integers(1, 5, 5000))) % 5
    answer = np.where(rng.random(5000) < 0.6, truth[question], wrong)
    reports = Reports.unprotected(
        Answers(worker, question, answer, np.arange(60), np.arange(500), Choices(tuple("abcde")))
    )
    found, vote = DawidSkene().fit(reports), Majority().fit(reports)
    assert (found.value == truth).mean() > (vote.value == truth).mean() + 0.05


def test_bounds_next_to_certainty_are_those_of_double_precision() -> None:
    share = 1 - 1e-9
    posterior = np.array([[share, 1 - share]])
    double, single = (
        odds_interval(posterior.astype(kind), np.zeros(1, np.int64), np.array([9.0]), np.ones(1, bool))
        for kind in (np.float64, np.float32)
    )
    np.testing.assert_allclose(single[0], double[0], rtol=1e-5)
    # The log-odds are 20.7 and vary by 9.0: two standard deviations below they are 3.1.
    assert double[0][0] == pytest.approx(1 / (1 + np.exp(-(np.log(share / (1 - share)) - 1.959964 * 9))), rel=1e-6)


@pytest.mark.parametrize("name", ["dawid-skene", "one-coin", "channel-bp", "majority"])
def test_questions_that_nobody_was_asked_change_nothing(name: str) -> None:
    reports = Reports.unprotected(choice_crowd(12, n_questions=10)[0])
    among_many = replace(reports, questions=np.arange(50_000))
    own, many = method(name).fit(reports), method(name).fit(among_many)
    np.testing.assert_array_equal(many.value[:10], own.value)
    assert (many.value[10:] == -1).all()
    np.testing.assert_allclose(many.low[:10], own.low, atol=1e-6)
    assert own.floor is not None is not many.floor
    assert own.floor.sentence == many.floor.sentence


def test_blocks_and_threads_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, _ = choice_crowd(11, n_questions=500)
    reports = Reports.unprotected(answers)
    whole = DawidSkene(precision="float64").fit(reports)
    monkeypatch.setattr("crowdveil.inference.engine.blocks.SINGLE_BLOCK_REPORTS", 10)
    shuffled = reports.rows(np.random.default_rng(0).permutation(len(reports)))
    for table in (reports, shuffled):
        split = DawidSkene(precision="float64", engine=LocalEngine(threads=3)).fit(table)
        np.testing.assert_allclose(split.posterior, whole.posterior, atol=1e-9)


def test_too_many_options_for_a_confusion_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdveil.inference.methods.dawid_skene.MAX_ENTRIES", 10_000)
    rows = [("ada", "q", "1"), ("bob", "q", "1")]
    reports = Reports.unprotected(Answers.from_rows(rows, Choices(tuple(map(str, range(100))))))
    with pytest.raises(InputError, match="use one-coin"):
        DawidSkene().fit(reports)
    assert OneCoin().fit(reports).values() == ["1"]
    many = Reports.unprotected(Answers.from_rows(rows, Choices(tuple(map(str, range(3000))))))
    with pytest.raises(InputError, match="use majority"):
        OneCoin().fit(many)
    assert Majority().fit(many).values() == ["1"]
