"""Going on from an earlier estimate: newcomers begin as the typical worker, and what does not fit is left aside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from inference.crowds import choice_crowd, number_crowd, protected

from crowdveil import Choices, Reports, Scale
from crowdveil.inference import METHODS, DawidSkene, Method, OneCoin, method
from crowdveil.inference.base import IterativeMethod
from crowdveil.simulate import ChoiceCrowd

NAMES = [name for name, kind in METHODS.items() if issubclass(kind, IterativeMethod)]


def table_for(fitting: Method) -> Reports:
    n_options = 2 if fitting.name == "private-dawid-skene" else 3
    answers, _ = number_crowd(1) if fitting.numeric else choice_crowd(1, n_options=n_options)
    return protected(answers, 3.0, seed=1)


def strangers(reports: Reports) -> Reports:
    return replace(reports, workers=np.array([f"other {worker}" for worker in reports.workers], dtype=object))


@pytest.mark.parametrize("name", NAMES)
def test_a_start_that_met_none_of_the_workers_arrives_at_the_cold_result(name: str) -> None:
    fitting = method(name)
    reports = table_for(fitting)
    cold, warm = fitting.fit(reports), fitting.fit(reports, fitting.fit(strangers(reports)))
    # Two options may be as likely as each other to the third digit, and channel-em stops at a coarse tolerance.
    apart = np.abs(warm.value - cold.value)
    assert apart.mean() < 0.02
    assert not any("the start" in warning for warning in warm.warnings)


@pytest.mark.parametrize("prior", ["auto", "reference", "none"])
def test_confusions_of_strangers_do_not_begin_as_coins(prior: str) -> None:
    reports = Reports.unprotected(choice_crowd(2)[0])
    fitting = DawidSkene(prior=prior)
    warm = fitting.fit(reports, fitting.fit(strangers(reports)))
    np.testing.assert_allclose(warm.posterior, fitting.fit(reports).posterior, atol=0.02)


@pytest.mark.parametrize("kind", [DawidSkene, OneCoin])
def test_starting_again_and_again_stays_where_it_was(kind: type[DawidSkene]) -> None:
    crowd = ChoiceCrowd(n_workers=20, n_questions=40, domain=Choices(("no", "yes")), share=0.5, ability=(0.5, 0.9))
    reports = protected(crowd.draw(seed=30).answers, 2.0, seed=30)
    cold = found = kind().fit(reports)
    for _ in range(4):
        found = kind().fit(reports, found)
        np.testing.assert_allclose(found.posterior, cold.posterior, atol=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_a_start_about_other_options_is_left_aside_with_a_warning(name: str) -> None:
    fitting = method(name)
    reports = table_for(fitting)
    other = Scale(10, 30) if fitting.numeric else Choices(tuple(f"word {code}" for code in range(reports.domain.size)))
    estimate = fitting.fit(reports)
    found = fitting.fit(reports, replace(estimate, domain=other))
    np.testing.assert_array_equal(found.value, estimate.value)
    assert f"the start is about other options or levels, so {name} began anew" in found.warnings


@pytest.mark.parametrize("name", NAMES)
def test_a_start_that_knew_nobody_is_none(name: str) -> None:
    fitting = method(name)
    reports = table_for(fitting)
    nobody = replace(reports.rows(np.empty(0, dtype=np.int64)), workers=reports.workers[:0])
    found = fitting.fit(reports, fitting.fit(nobody))
    np.testing.assert_array_equal(found.value, fitting.fit(reports).value)
    assert f"the start is not one that these reports can go on from, so {name} began anew" in found.warnings


def test_a_start_of_another_method_is_left_aside_with_a_warning() -> None:
    reports = Reports.unprotected(choice_crowd(3)[0])
    found = OneCoin().fit(reports, DawidSkene().fit(reports))
    np.testing.assert_array_equal(found.value, OneCoin().fit(reports).value)
    assert "the start is an estimate of dawid-skene, so one-coin began anew" in found.warnings
    assert any("so " in each and "began anew" in each for each in method("auto").fit(reports, found).warnings)


def test_channel_bp_does_not_learn_classes_first_once_more() -> None:
    reports = protected(choice_crowd(4, n_questions=400)[0], 3.0, seed=4)
    fitting = method("channel-bp")
    cold = fitting.fit(reports)
    warm = fitting.fit(reports, fitting.fit(reports.rows(np.flatnonzero(reports.question < 360))))
    assert warm.iterations < cold.iterations - 5
    np.testing.assert_allclose(warm.posterior, cold.posterior, atol=0.02)
