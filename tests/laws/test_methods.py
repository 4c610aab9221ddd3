"""What every method promises, whatever the crowd: run on each member of the registry without naming it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from crowdveil import Answers, Choices, Estimate, InputError, Reports, Scale
from crowdveil.entropy import entropy_from
from crowdveil.inference import METHODS, Method
from crowdveil.mechanisms import mechanism

pytestmark = pytest.mark.slow
IDS: list[Callable[[int], Any]] = [int, float, lambda code: f"id {code}, with a comma", lambda code: f"№{code}"]
ALL = pytest.mark.parametrize("name", list(METHODS))
FEW = settings(max_examples=25, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])


@st.composite
def tables(draw: st.DrawFn) -> Reports:
    """Small, awkward crowds: lone answers, options nobody chose, empty questions, every kind of id and channel."""
    n_workers, n_questions = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    n_options = draw(st.sampled_from([1, 2, 2, 3, 7]))
    levels = [str(code) for code in range(n_options)]
    domain = Scale(0, n_options - 1) if n_options > 1 and draw(st.booleans()) else Choices(tuple(levels))
    cells = st.tuples(st.integers(0, n_workers - 1), st.integers(0, n_questions - 1))
    seen = draw(st.lists(cells, max_size=n_workers * n_questions, unique=True))
    given_answers = [draw(st.integers(0, n_options - 1)) for _ in seen]
    spelled = draw(st.sampled_from(IDS))
    answers = Answers(
        np.array([worker for worker, _ in seen], dtype=np.int32),
        np.array([question for _, question in seen], dtype=np.int32),
        np.array(given_answers, dtype=np.int32),
        [spelled(code) for code in range(n_workers)],
        [spelled(code) for code in range(n_questions)],
        domain,
    )
    epsilon = draw(st.sampled_from([None, 0.5, 2.0]))
    if epsilon is None:
        return Reports.unprotected(answers)
    hidden = draw(st.booleans())
    chosen = mechanism("randomized-response", epsilon=epsilon, protect_participation=hidden)
    return chosen.randomize(answers, entropy_from(draw(st.integers(0, 100))))


def fitted(method: Method, reports: Reports, start: Estimate | None = None) -> Estimate:
    """The estimate; a table that the method is not for is refused in one sentence, which is no example here."""
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        try:
            return method.fit(reports, start)
        except InputError:
            assume(False)
            raise


@ALL
@FEW
@given(reports=tables())
def test_every_estimate_is_finished_without_nan_and_its_posteriors_are_probabilities(
    name: str, reports: Reports
) -> None:
    estimate = fitted(METHODS[name](), reports)
    n_estimates = len(estimate.questions)
    known = estimate.answered
    assert estimate.method == name or estimate.provenance
    for column in (estimate.value, estimate.confidence, estimate.low, estimate.high):
        assert column.shape == (n_estimates,)
        assert np.isfinite(column[known]).all()
    assert (estimate.low[known] <= estimate.high[known]).all()
    assert ((estimate.confidence >= 0) & (estimate.confidence <= 1)).all()
    assert np.isfinite(estimate.trace).all()
    if estimate.skills is not None:
        assert len(estimate.skills.workers) == len(estimate.skills.skill)
        for column in (estimate.skills.skill, estimate.skills.low, estimate.skills.high):
            assert np.isfinite(column).all()
        assert (estimate.skills.low <= estimate.skills.skill).all()
        assert (estimate.skills.skill <= estimate.skills.high).all()
    for values in estimate.parameters.values():
        assert np.isfinite(values).all()
    if estimate.posterior is None:
        assert not estimate.categorical
        return
    assert np.isfinite(estimate.posterior).all()
    assert (estimate.posterior >= 0).all()
    np.testing.assert_allclose(estimate.posterior.sum(axis=1), 1, atol=1e-4)


@ALL
@FEW
@given(reports=tables(), seed=st.integers(0, 1000))
def test_the_order_of_reports_is_irrelevant(name: str, reports: Reports, seed: int) -> None:
    shuffled = reports.rows(np.random.default_rng(seed).permutation(len(reports)))
    first, second = fitted(METHODS[name](), reports), fitted(METHODS[name](), shuffled)
    np.testing.assert_allclose(first.value, second.value, rtol=0, atol=0 if first.categorical else 1e-9)
    np.testing.assert_allclose(first.confidence, second.confidence, atol=1e-6)
    np.testing.assert_allclose(first.low, second.low, atol=1e-6)


@ALL
@FEW
@given(reports=tables())
def test_a_question_nobody_reported_on_has_no_estimate(name: str, reports: Reports) -> None:
    estimate = fitted(METHODS[name](), reports)
    assume(len(estimate) == reports.n_questions)
    silent = np.bincount(reports.question, minlength=reports.n_questions) == 0
    assert not estimate.answered[silent].any()
    assert not estimate.confidence[silent].any()
    if estimate.categorical:
        assert not estimate.low[silent].any()
        assert estimate.high[silent].all()
    if not any(channel.guarantee.protected for channel in reports.channels):
        assert estimate.answered[~silent].all()


@ALL
@FEW
@given(reports=tables())
def test_an_estimate_can_start_the_next_fit(name: str, reports: Reports) -> None:
    first = fitted(METHODS[name](), reports)
    second = fitted(METHODS[name](), reports, first)
    assert len(second) == len(first)
    assert (second.answered == first.answered).all()


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["type_weight", "spread_weight", "truth_weight", "least_spread"])
def test_weights_of_nothing_and_beyond_all_measure_are_refused(name: str, value: float) -> None:
    kinds = [kind for kind in METHODS.values() if name in {field.name for field in fields(kind)}]
    assert kinds
    for kind in kinds:
        with pytest.raises(InputError, match=f"{name} must be (positive and below 1e100|above 0 and at most 1); got"):
            kind(**{name: value})


@ALL
def test_no_reports_at_all_give_no_estimates(name: str) -> None:
    none: list[int] = []
    for domain in (Choices(("a", "b")), Scale(0, 4)):
        for ids in (none, ["only"]):
            empty = Reports.unprotected(Answers(none, none, none, ids, ids, domain))
            try:
                estimate = METHODS[name]().fit(empty)
            except InputError:
                continue
            assert not estimate.answered.any()


@ALL
def test_all_workers_agreeing_settles_it(name: str) -> None:
    rows = [(worker, question, "1") for worker in "abcdef" for question in "pqrs"]
    for domain in (Choices(("0", "1")), Scale(0, 1), Scale(0, 3)):
        try:
            estimate = METHODS[name]().fit(Reports.unprotected(Answers.from_rows(rows, domain)))
        except InputError:
            continue
        if len(estimate) == 4:
            np.testing.assert_allclose([float(value or "nan") for value in estimate.values()], 1, atol=0.25)
