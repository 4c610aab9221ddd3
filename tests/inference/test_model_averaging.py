"""Uneven answers: what each explanation foretells tells a crowd that leans from classes of unequal size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from inference.families import reported
from numpy.typing import NDArray

from crowdveil import Answers, Choices, Reports
from crowdveil.inference import ChannelBP, Majority
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.engine.local import LocalSession
from crowdveil.inference.models.model_averaging import BiasAveragedModel, read_belief, sigmoid
from crowdveil.inference.models.worker_type import TypeModel
from crowdveil.inference.priors.worker_types import worker_types

LEANING = ((0.92, 0.08), (0.4, 0.6))
PLAIN = ((0.8, 0.2), (0.2, 0.8))


def crowd(
    seed: int, confusion: tuple[tuple[float, float], ...], classes: float, n_questions: int, per_question: int
) -> tuple[Answers, NDArray[Any]]:
    """Sixty workers alike, two options, the first of which is the truth of this share of the questions."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_questions) >= classes).astype(np.int64)
    worker = np.argsort(rng.random((n_questions, 60)), axis=1)[:, :per_question].ravel()
    question = np.repeat(np.arange(n_questions), per_question)
    answer = (rng.random(len(worker)) >= np.array(confusion)[truth[question], 0]).astype(np.int64)
    return Answers(worker, question, answer, np.arange(60), np.arange(n_questions), Choices(("a", "b"))), truth


def class_explanation_weight(reports: Reports) -> float:
    return float(ChannelBP().fit(reports).parameters["class_explanation_weight"][0])


@pytest.mark.parametrize("epsilon", [None, 2.0, 1.0])
def test_lopsided_classes_are_told_from_a_leaning(epsilon: float | None) -> None:
    answers, _ = crowd(1, PLAIN, 0.8, n_questions=2000, per_question=12)
    assert class_explanation_weight(reported(answers, epsilon, 1)) > 0.95


def test_a_leaning_is_told_from_lopsided_classes() -> None:
    """Where noise is strong; with less of it the law of types shows the leaning even if classes are learned."""
    answers, _ = crowd(1, LEANING, 0.5, n_questions=2000, per_question=12)
    assert class_explanation_weight(reported(answers, 1.0, 1)) < 0.2


def test_answers_as_often_one_as_the_other_do_not_tell() -> None:
    answers, _ = crowd(2, PLAIN, 0.5, n_questions=500, per_question=5)
    assert class_explanation_weight(reported(answers, 1.0, 2)) == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize("gold", [-1, 1])
@pytest.mark.parametrize("hidden", [False, True])
def test_each_report_is_foretold_by_all_the_others(hidden: bool, gold: int) -> None:
    """On a tree belief propagation is exact: ada answers both questions, bob and cy one each."""
    worker, question, report = (np.array(column) for column in ([0, 1, 0, 2], [0, 0, 1, 1], [0, 0, 1, 0]))
    answers = Answers(worker, question, report, np.arange(3), np.arange(2), Choices(("a", "b")))
    reports = reported(answers, 1.0, 3, hidden=hidden)
    # With participation hidden everybody reports on everything; a tree is what these four make.
    pairs = list(zip(reports.worker.tolist(), reports.question.tolist(), strict=True))
    reports = reports.rows(np.array([pairs.index(pair) for pair in zip(worker, question, strict=True)]))
    # So many pseudo-workers that the law of types stays what it is, and even classes.
    method = ChannelBP(classes="even", type_weight=1e12, tol=1e-12, precision="float64")
    model = method.model(table_context(reports))
    session = method.engine.open(model, reports, np.array([gold, -1], dtype=np.int32))
    parameters = model.m_step(session.e_pass({}), {})
    for _ in range(200):
        parameters = model.m_step(session.e_pass(parameters), parameters)
    assert isinstance(session, LocalSession)
    expected = np.log(foretold_exactly(reports, parameters["share"], gold))
    np.testing.assert_allclose(session.states[0].foretold, [expected[:2].sum(), expected[2:].sum()], rtol=1e-6)


def foretold_exactly(reports: Reports, share: NDArray[Any], gold: int) -> NDArray[Any]:
    """P(report | the other three): ada and bob on the first question, ada and cy on the second; by summing it all."""
    types = worker_types(2)
    answer = types.ability[:, None, None] * np.eye(2) + (1 - types.ability)[:, None, None] * types.leaning[:, None, :]
    channel = reports.channels[0].table
    silent = channel[2] if len(channel) > 2 else np.zeros(channel.shape[1])
    order = np.lexsort((reports.worker, reports.question))
    codes, given = reports.report[order], share[reports.worker[order]]
    first_truth = np.array([0.5, 0.5]) if gold < 0 else np.eye(2)[gold]

    def seen(row: int) -> NDArray[Any]:
        """Type × truth."""
        spoken = (answer @ channel[:2])[:, :, codes[row]]
        mixed: NDArray[Any] = given[row] * spoken + (1 - given[row]) * silent[codes[row]]
        return mixed

    def chance(known: tuple[int, ...]) -> float:
        ada, bob, also, cy = (seen(row) if row in known else np.ones((len(types), 2)) for row in range(4))
        first, second = types.share @ bob, types.share @ cy
        both = np.einsum("s,st,su->tu", types.share, ada, also)
        return float((first * first_truth) @ both @ second) / 2

    return np.array([chance((0, 1, 2, 3)) / chance(tuple({0, 1, 2, 3} - {row})) for row in range(4)])


def test_a_lead_of_a_nat_is_worth_a_factor_of_e() -> None:
    assert sigmoid(0.0) == 0.5
    assert sigmoid(1.0) / (1 - sigmoid(1.0)) == pytest.approx(np.e)
    assert sigmoid(-1e6) == pytest.approx(0.0)
    assert sigmoid(1e6) == 1.0


def test_frequencies_that_shrinkage_hides_do_not_decide() -> None:
    """Under much noise classes are held near even ones, and a leaning could always foretell frequencies better."""
    rng = np.random.default_rng(5)
    found = []
    for seed in range(4):
        truth = rng.choice(4, 500, p=[0.7, 0.15, 0.1, 0.05])
        worker = np.argsort(rng.random((500, 80)), axis=1)[:, :7].ravel()
        question = np.repeat(np.arange(500), 7)
        answer = np.where(rng.random(len(worker)) < 0.5, truth[question], rng.integers(0, 4, len(worker)))
        answers = Answers(worker, question, answer, np.arange(80), np.arange(500), Choices(tuple("abcd")))
        found.append(class_explanation_weight(reported(answers, 0.5, seed)))
    assert np.mean(found) > 0.35


def test_an_explanation_that_is_behind_comes_to_rest_before_it_is_judged() -> None:
    """Classes are learned slowly; with 30 000 questions they overtook a leaning after eighty steps by sixty nats."""
    answers, _ = crowd(3, PLAIN, 0.7, n_questions=20, per_question=3)
    model = ChannelBP().model(table_context(reported(answers, 1.0, 3)))
    statistics = {"moved": 5.0, "questions": 10.0, "moved_if_leaning": 0.1, "questions_if_leaning": 10.0}
    arrays = {name: np.array(value) for name, value in statistics.items()}
    assert model.measure(arrays, {"class_explanation_weight": np.zeros(1)}) == 0.5


def test_few_who_answer_much_count_by_their_reports() -> None:
    """Four who say the first option to everything are half of the reports, though few of the workers."""
    found = []
    for seed in range(3):
        answers, _ = crowd(seed, PLAIN, 0.5, n_questions=400, per_question=5)
        rng = np.random.default_rng(seed)
        question = np.concatenate([answers.question, np.repeat(np.arange(400), 4)])
        # The sixty become three hundred who answer less.
        some = answers.worker + 60 * rng.integers(0, 5, len(answers))
        worker = np.concatenate([some, np.tile(np.arange(300, 304), 400)])
        answer = np.concatenate([answers.answer, (rng.random(1600) >= 0.9).astype(np.int64)])
        crowded = Answers(worker, question, answer, np.arange(304), np.arange(400), answers.domain)
        found.append(class_explanation_weight(reported(crowded, 2.0, seed)))
    assert 0.2 < np.mean(found) < 0.8


def test_what_frequencies_foretell_goes_by_each_workers_own_share() -> None:
    answers, _ = crowd(7, PLAIN, 0.7, n_questions=50, per_question=6)
    reports = reported(answers, 2.0, 7, hidden=True)
    method = ChannelBP(classes="even")
    model = method.model(table_context(reports))
    assert isinstance(model, TypeModel)
    session = method.engine.open(model, reports, None)
    share, table = np.linspace(0.1, 0.9, 60), reports.channels[0].table
    expected = sum(
        np.log(share[worker] * (0.7 * table[0] + 0.3 * table[1])[code] + (1 - share[worker]) * table[2, code])
        for worker, code in zip(reports.worker, reports.report, strict=True)
    )
    found = model.usual(np.array([0.7, 0.3]), share, session.states[0])
    assert found == pytest.approx(expected, rel=1e-6)


def test_nobody_and_nothing_do_not_tell() -> None:
    none = np.empty(0, dtype=np.int64)
    nobody = Answers(none, none, none, none, none, Choices(("a", "b")))
    assert class_explanation_weight(reported(nobody, 1.0, 1)) == 0.5


def test_results_mix_both_explanations() -> None:
    answers, _ = crowd(4, LEANING, 0.7, n_questions=120, per_question=6)
    estimate = ChannelBP().fit(reported(answers, 0.5, 4))
    assert 0.05 < estimate.provenance["class_explanation_weight"] < 0.95  # type: ignore[operator]
    assert estimate.posterior is not None
    np.testing.assert_allclose(estimate.posterior.sum(axis=1), 1, rtol=1e-5)
    assert (estimate.low <= estimate.confidence + 1e-6).all()
    assert (estimate.confidence <= estimate.high + 1e-6).all()


def test_the_explanations_share_neither_messages_nor_posteriors() -> None:
    answers, _ = crowd(4, PLAIN, 0.7, n_questions=20, per_question=6)
    reports, method = reported(answers, 0.5, 4), ChannelBP()
    model = method.model(table_context(reports))
    assert isinstance(model, BiasAveragedModel)
    session = method.engine.open(model, reports, None)
    assert isinstance(session, LocalSession)
    first, second = session.states[0]
    for name in ("message", "posterior", "foretold"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        assert not np.shares_memory(getattr(first, name), getattr(second, name))


def test_classes_count_by_the_reports_about_them() -> None:
    answers, _ = crowd(4, PLAIN, 0.7, n_questions=20, per_question=6)
    reports, method = reported(answers, 0.5, 4), ChannelBP()
    model = method.model(table_context(reports))
    session = method.engine.open(model, reports, None)
    found = session.e_pass(model.m_step(session.e_pass({}), {}))
    assert found["named"].sum() == pytest.approx(120)
    np.testing.assert_allclose(found["named"], 6 * found["classes"], rtol=1e-5)


def test_beliefs_and_classes_count_by_the_weight_of_their_explanation() -> None:
    answers, _ = crowd(4, PLAIN, 0.7, n_questions=20, per_question=6)
    model = ChannelBP().model(table_context(reported(answers, 0.5, 4)))
    logs = {"belief": [[0.5, 0.5]], "belief_if_leaning": [[0.9, 0.1]]}
    logs |= {"log_classes": [0.75, 0.25], "log_classes_if_leaning": [0.5, 0.5]}
    parameters = {name: np.log(shares) for name, shares in logs.items()} | {"class_explanation_weight": np.array([0.8])}
    assert read_belief(parameters) == pytest.approx(np.array([[0.8 * 0.5 + 0.2 * 0.9, 0.8 * 0.5 + 0.2 * 0.1]]))
    found = model.prior(np.array([True, False]), parameters)
    assert found["posterior"] == pytest.approx(np.array([[0.7, 0.3]] * 2))
    assert (found["low"], found["high"]) == (pytest.approx([0.7, 0.0]), pytest.approx([0.7, 1.0]))


def test_a_warm_start_goes_on_with_both_explanations() -> None:
    answers, _ = crowd(6, LEANING, 0.7, n_questions=200, per_question=8)
    reports = reported(answers, 1.0, 6)
    cold = ChannelBP(tol=1e-6).fit(reports)
    warm = ChannelBP(tol=1e-6).fit(reports, cold)
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.posterior, cold.posterior, atol=1e-3)


def test_a_fit_with_learned_classes_is_a_start_for_one_of_the_two() -> None:
    answers, _ = crowd(6, PLAIN, 0.8, n_questions=200, per_question=8)
    reports = reported(answers, 1.0, 6)
    learned, cold = ChannelBP(classes="learned").fit(reports), ChannelBP(tol=1e-6).fit(reports)
    started = ChannelBP(tol=1e-6).fit(reports, learned)
    assert started.trace[0] != cold.trace[0]
    np.testing.assert_allclose(started.posterior, cold.posterior, atol=1e-3)
    known = {name: value for name, value in cold.parameters.items() if name != "log_types_if_leaning"}
    half = ChannelBP(max_iter=3).fit(reports, replace(cold, parameters=known))
    assert half.trace == ChannelBP(max_iter=3).fit(reports, replace(learned, parameters=_first_of(known))).trace


def _first_of(parameters: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: parameters[name] for name in ("belief", "log_types", "log_classes")}


def test_a_leaning_crowd_does_not_put_channel_bp_below_the_vote() -> None:
    gain = []
    for seed in range(8):
        answers, truth = crowd(seed, LEANING, 0.5, n_questions=300, per_question=11)
        reports = reported(answers, 1.0, seed)
        methods = (Majority(), ChannelBP(), ChannelBP(classes="learned"))
        vote, weighed, learned = ((method.fit(reports).value == truth).mean() for method in methods)
        gain.append((weighed - vote, learned - vote))
    mean, error = np.mean(gain, axis=0), np.std(gain, axis=0, ddof=1) / np.sqrt(len(gain))
    assert mean[0] >= -2 * error[0]
    assert mean[1] < -2 * error[1]
