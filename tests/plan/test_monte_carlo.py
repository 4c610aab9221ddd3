"""Simulations: the mean of what a count of mistakes would be, in a fraction of the studies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from plan.simulated import answers_of, errors_of

from crowdveil import Choices, Scale, entropy_from
from crowdveil.inference import method
from crowdveil.mechanisms import mechanism
from crowdveil.plan import CrowdPart, CrowdSkill, Prediction, Setting, plan
from crowdveil.plan.expected_error import expect_error, recommended_method
from crowdveil.plan.monte_carlo import simulate
from crowdveil.plan.study_simulator import draw_study

pytestmark = pytest.mark.slow
YES, STARS = Choices(("no", "yes")), Scale(1, 5)


def study(
    domain: Choices | Scale = YES, n_workers: int = 20, n_questions: int = 10, skill: str = "spammers"
) -> Setting:
    return Setting(domain, 1.5, n_workers, 0.7, CrowdSkill.from_name(skill, domain), n_questions=n_questions)


def part(setting: Setting) -> CrowdPart:
    return CrowdPart(
        mechanism("randomized-response", epsilon=setting.epsilon).channel(setting.domain), setting.n_workers
    )


def counted(setting: Setting, n_studies: int) -> np.ndarray:
    """The error of each of some studies, mistakes counted one by one."""
    rng, made = np.random.default_rng(5), mechanism("randomized-response", epsilon=setting.epsilon)
    errors = []
    for _ in range(n_studies):
        truth, answers, skill = answers_of(setting, rng)
        reports = made.randomize(answers, entropy_from(int(rng.integers(2**62))))
        if isinstance(setting.domain, Scale):
            errors.append(errors_of(setting, truth, reports, skill).mean())
        else:
            errors.append((np.maximum(method("channel-bp").fit(reports).value, 0) != truth).mean())
    return np.array(errors)


@pytest.mark.parametrize("domain", [YES, STARS])
def test_a_simulation_means_what_counting_mistakes_means(domain: Choices | Scale) -> None:
    setting = study(domain)
    played = simulate(setting, [part(setting)], recommended_method(setting, population=False))
    assert played is not None
    errors = counted(setting, 120)
    noise = math.hypot(errors.std() / math.sqrt(len(errors)), played.standard_error)
    assert played.error == pytest.approx(errors.mean(), abs=5 * noise)
    assert played.between_studies == pytest.approx(errors.std(), rel=0.3)


def test_where_workers_are_alike_a_few_studies_tell_what_a_hundred_counts_would() -> None:
    setting = study(skill="good")
    played = simulate(setting, [part(setting)], "channel-bp")
    assert played is not None
    assert played.n_studies * 10 < (played.between_studies / played.standard_error) ** 2


@pytest.mark.parametrize(("domain", "n_questions"), [(YES, 5), (YES, 30), (STARS, 20)])
def test_the_interval_holds_single_studies(domain: Choices | Scale, n_questions: int) -> None:
    setting = study(domain, n_questions=n_questions)
    low, high = plan(setting, mechanism="randomized-response", effort=0.3).interval
    errors = counted(setting, 80)
    held = float(((errors >= low - 1e-12) & (errors <= high + 1e-12)).mean())
    assert held >= 0.95 - 5 * math.sqrt(0.95 * 0.05 / len(errors))
    assert (errors.mean() - low) / errors.std() < 4
    assert (high - errors.mean()) / errors.std() < 4


def test_a_calculation_that_saw_no_mistake_outweighs_no_simulation_that_did() -> None:
    setting = study(n_workers=60, n_questions=20)
    alone = simulate(setting, [part(setting)], "channel-bp", effort=0.03)
    assert alone is not None
    for seen in (0.0, 1e-5):
        both = expect_error(setting, [part(setting)], Prediction(seen, 0.0, 0.0), population=False, effort=0.03)
        assert both.error == pytest.approx(alone.error, rel=0.1)
        assert both.at_most >= alone.at_most


def test_what_was_not_seen_is_not_taken_for_impossible() -> None:
    setting = Setting(YES, 8.0, 200, 1.0, CrowdSkill.from_name("expert", YES), n_questions=5)
    played = simulate(setting, [part(setting)], "channel-bp", effort=0.1)
    assert played is not None
    assert played.standard_error < 1e-9
    assert played.at_most >= 3 / (5 * played.n_studies)


def test_the_same_plan_is_made_again() -> None:
    setting = study()
    assert plan(setting, effort=0.1) == plan(setting, effort=0.1)


def test_a_study_too_large_to_draw_is_only_calculated() -> None:
    large = study(n_workers=100_000, n_questions=100)
    assert simulate(large, [part(large)], "channel-bp") is None
    assert plan(large, mechanism="randomized-response", effort=0.1).n_simulations == 0
    assert plan(study(), effort=0).n_simulations == 0


def test_nothing_is_not_a_number_where_nobody_is_ever_wrong() -> None:
    setting = Setting(YES, 8.0, 200, 1.0, CrowdSkill.from_name("expert", YES), n_questions=5)
    found = plan(setting, mechanism="randomized-response", effort=0.25)
    assert 0 <= found.expected_error < 1e-6
    assert found.expected_error < found.at_most < 0.02 * found.prior_error
    assert all(math.isfinite(each) for each in (*found.interval, found.standard_error))


@pytest.mark.parametrize("domain", [YES, STARS])
@pytest.mark.parametrize("population", [False, True])
def test_questions_nobody_reported_on_count_as_guesses(domain: Choices | Scale, population: bool) -> None:
    setting = Setting(domain, 2.0, 3, 0.02, CrowdSkill.from_name("good", domain), n_questions=30)
    found = plan(setting, population=population, mechanism="randomized-response", effort=0.2)
    assert found.expected_error == pytest.approx(found.prior_error, rel=0.1)
    assert all(math.isfinite(each) for each in (*found.interval, found.standard_error))


@pytest.mark.parametrize("effort", [0.0, 0.03])
@pytest.mark.parametrize(
    ("epsilon", "n_workers", "n_questions", "skill"),
    [(3.0, 1000, 40, "expert"), (4.0, 8000, 5, "good")],
)
def test_where_numbers_are_only_calculated_the_interval_holds_what_the_method_gives(
    epsilon: float, n_workers: int, n_questions: int, skill: str, effort: float
) -> None:
    setting = Setting(STARS, epsilon, n_workers, 1.0, CrowdSkill.from_name(skill, STARS), n_questions=n_questions)
    found = plan(setting, mechanism="randomized-response", effort=effort)
    assert found.n_simulations == 0
    low, high = found.interval
    rng = np.random.default_rng(4)
    errors = []
    for _ in range(8):
        drawn = draw_study(setting, [part(setting)], rng)
        errors.append(float(np.abs(method("channel-em").fit(drawn.reports).value - drawn.truth).mean()))
    assert sum(low <= error <= high for error in errors) >= 7
    assert found.at_most > np.mean(errors)


@pytest.mark.parametrize("n_workers", [200, 20_000, 2_000_000])
@pytest.mark.parametrize("skill", ["expert", "0.1", "spammers"])
def test_what_is_calculated_never_promises_less_than_the_floor(n_workers: int, skill: str) -> None:
    setting = Setting(STARS, 3.0, n_workers, 1.0, CrowdSkill.from_name(skill, STARS), n_questions=20)
    found = plan(setting, mechanism="randomized-response", effort=0)
    guessed = found.prior_error * 2 / math.sqrt(3)
    assert found.expected_error >= math.sqrt(2 / math.pi) / math.hypot(1 / found.floor, 1 / guessed)
