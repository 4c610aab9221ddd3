"""The planner: floors, searches, charges and the sentence "impossible"."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from cli.run import crowdveil, crowdveil_json
from plan.simulated import Case, draw_case, simulated_error

from crowdveil import Choices, InputError, Scale
from crowdveil.mechanisms import MECHANISMS, ChannelMechanism, mechanism
from crowdveil.plan import SKILLS, CrowdSkill, Setting, plan, predict, predict_population, study_charge
from crowdveil.plan.lower_bound import choice_floor, scale_floor
from crowdveil.plan.recommend import Recommendation, mechanism_channel
from crowdveil.plan.sample_size import smallest_reaching

pytestmark = pytest.mark.slow
YES = Choices(("no", "yes"))
DIGITS = Scale(0, 9)


def setting(domain: Choices | Scale = YES, **changes: object) -> Setting:
    given = {"epsilon": 1.0, "n_workers": 100, "share": 1.0, "skill": "mixed"} | changes
    return Setting(domain, given.pop("epsilon"), given.pop("n_workers"), given.pop("share"),
                   CrowdSkill.from_name(str(given.pop("skill")), domain), **given)  # fmt: skip


@pytest.mark.parametrize(("epsilon", "mixed", "good"), [(0.1, 7.8, 5.6), (1, 0.72, 0.52), (3, 0.19, 0.14)])
def test_scale_floor_of_two_thousand_workers(epsilon: float, mixed: float, good: float) -> None:
    given = {"epsilon": epsilon, "n_workers": 2000, "share": 0.1, "protect_participation": True}
    assert scale_floor(setting(DIGITS, **given)) == pytest.approx(mixed, rel=0.03)
    assert scale_floor(setting(DIGITS, **given, skill="good")) == pytest.approx(good, rel=0.03)


def test_symbols_may_be_grouped_where_there_are_many() -> None:
    coarse, fine = (scale_floor(setting(Scale(0, 9, step), skill="mixed")) for step in ("0.3", "0.1"))
    assert fine == pytest.approx(coarse, rel=0.03)


def test_people_who_hardly_err_do_not_make_a_study_impossible() -> None:
    found = plan(setting(Scale(1, 5), epsilon=2.0, n_workers=300, skill="0.1"), effort=0)
    assert found.feasible
    assert found.floor < found.expected_error


def test_errors_are_in_points_of_the_scale_whatever_its_step() -> None:
    asked = ["plan", "--scale", "0:60:5", "--epsilon", 1, "--workers", 50, "--population", "--effort", 0]
    done, result = crowdveil(*asked), crowdveil_json(*asked)
    assert result["unit"] == "points on the scale 0 to 60"
    assert f"{result['expected_error']:.3g} points on the scale 0 to 60" in done.stdout
    assert "levels" not in done.stdout
    coarse, fine = (
        plan(setting(Scale(0, 60, step), epsilon=1.0, n_workers=50), population=True, effort=0) for step in (5, 1)
    )
    assert coarse.expected_error == pytest.approx(fine.expected_error, rel=0.3)
    assert plan(setting(), effort=0).unit == "share"


@pytest.mark.parametrize("population", [True, False])
@pytest.mark.parametrize("domain", [Scale(0, 60, 5), Scale(1, 10), YES])
def test_no_error_is_promised_beyond_the_scale(domain: Choices | Scale, population: bool) -> None:
    largest = domain.range if isinstance(domain, Scale) else 1.0
    hopeless = plan(setting(domain, epsilon=0.02, n_workers=5), population=population, effort=0)
    low, high = hopeless.interval
    assert 0 <= low <= high <= largest
    assert hopeless.expected_error <= hopeless.at_most <= largest


def test_a_guess_is_called_a_guess_without_asking() -> None:
    done = crowdveil("plan", "--options", "no,yes", "--epsilon", 1, "--workers", 50, "--effort", 0)
    assert "a guess without asking: 0.5" in done.stdout
    assert "knowing nothing" not in done.stdout.lower()


@pytest.mark.parametrize("skill", list(SKILLS))
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("domain", [YES, Choices(tuple("abcde"))])
def test_no_prediction_for_choices_passes_the_floor(skill: str, epsilon: float, domain: Choices) -> None:
    study = setting(domain, epsilon=epsilon, n_workers=30, skill=skill)
    channel = mechanism("randomized-response", epsilon=epsilon).channel(domain)
    predicted = predict(study, channel, effort=0.3)
    assert choice_floor(study) <= predicted.error + 4 * predicted.standard_error
    assert predicted.error <= study.baseline_error + 5 * predicted.standard_error


def test_one_worker_who_is_always_right_errs_as_often_as_the_channel_lies() -> None:
    study = setting(epsilon=1.0, n_workers=1, skill="1.0")
    channel = mechanism("randomized-response", epsilon=1.0).channel(YES)
    predicted = predict(study, channel)
    assert predicted.error == pytest.approx(1 / (1 + math.e), abs=5 * predicted.standard_error)


def test_three_workers_who_are_always_right_vote() -> None:
    lie = 1 / (1 + math.e)
    study = setting(epsilon=1.0, n_workers=3, skill="1.0")
    predicted = predict(study, mechanism("randomized-response", epsilon=1.0).channel(YES))
    assert predicted.error == pytest.approx(lie**3 + 3 * lie**2 * (1 - lie), abs=5 * predicted.standard_error)


def test_knowing_more_about_workers_helps_and_never_harms() -> None:
    channel = mechanism("randomized-response", epsilon=2.0).channel(YES)
    few, many = (
        predict(setting(epsilon=2.0, n_workers=30, skill="spammers", n_questions=n), channel) for n in (1, 300)
    )
    assert many.error < few.error


def test_at_a_cell_epsilon_of_a_tenth_sparse_digits_are_impossible() -> None:
    found = crowdveil_json(
        "plan", "--scale", "0:9", "--epsilon", 0.1, "--workers", 2000, "--share", 0.1, "--skill", "mixed",
        "--protect-participation", "--mechanism", "randomized-response",
    )  # fmt: skip
    assert found["feasible"] is False
    assert found["floor"] == pytest.approx(7.8, rel=0.03)
    assert "impossible" in found["why"]
    assert found["charge"]["epsilon"] == pytest.approx(10, rel=1e-6)
    assert {"expected_error", "interval", "workers_needed", "epsilon_needed", "mechanism", "method"} <= set(found)


def test_a_mechanism_that_blurs_participation_is_not_recommended() -> None:
    study = setting(Scale(1, 5), share=0.5, n_workers=30, protect_participation=True)
    assert plan(study).mechanism in ("randomized-response", "subset-selection")
    with pytest.raises(InputError, match="how many answered"):
        plan(study, mechanism="optimal-scale")


def served() -> Iterator[tuple[str, Choices | Scale, float]]:
    """Every shipped mechanism with the domains and the ε that it serves."""
    for domain, epsilon in product((Choices(tuple("abcd")), Scale(1, 5), DIGITS), (0.1, 1.0, 8.0)):
        for name, kind in MECHANISMS.items():
            if issubclass(kind, ChannelMechanism):
                with suppress(InputError):
                    mechanism_channel(name, setting(domain, epsilon=epsilon))
                    yield name, domain, epsilon


@pytest.mark.parametrize(("name", "domain", "epsilon"), list(served()))
def test_what_serves_the_asked_epsilon_is_planned_whatever_a_search_meets(
    name: str, domain: Choices | Scale, epsilon: float
) -> None:
    study = setting(domain, epsilon=epsilon)
    found = plan(study, mechanism=name, population=True, effort=0)
    assert found.mechanism == name
    assert found.epsilon_needed is None or mechanism_channel(name, study.with_epsilon(found.epsilon_needed))


def test_a_mechanism_that_cannot_serve_a_small_epsilon_is_planned_with_a_larger_one() -> None:
    found = plan(setting(Scale(1, 5), n_workers=1000), mechanism="discrete-gaussian", target_error=0.9, effort=0)
    assert found.feasible
    assert found.epsilon_needed is not None
    assert found.epsilon_needed > 0.01


@pytest.mark.parametrize(
    ("domain", "target", "population", "protect"),
    [(YES, 0.08, False, False), (Scale(1, 5), 0.35, False, True), (Choices(tuple("abc")), 0.05, True, False)],
)
def test_what_a_target_takes_is_enough_and_hardly_more(
    domain: Choices | Scale, target: float, population: bool, protect: bool
) -> None:
    study = setting(domain, epsilon=1.5, n_workers=15, share=0.6, n_questions=30, protect_participation=protect)
    found = plan(study, target_error=target, population=population, mechanism="randomized-response")
    assert not found.feasible
    assert found.workers_needed is not None
    rng = np.random.default_rng(8)

    def above(changed: Setting, line: float) -> bool:
        """Studies are drawn until three standard errors tell."""
        case = Case(changed, population, None)
        drawn = simulated_error(
            case, found.mechanism, rng, settled=lambda seen: abs(seen.error - line) > 3 * seen.noise
        )
        return drawn.error > line

    assert not above(study.with_workers(found.workers_needed), 1.08 * target)
    assert above(study.with_workers(math.ceil(0.75 * found.workers_needed)), target)
    if found.epsilon_needed is not None:
        assert not above(study.with_epsilon(found.epsilon_needed), 1.08 * target)
        assert above(study.with_epsilon(0.75 * found.epsilon_needed), target)


@pytest.mark.parametrize("effort", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(4))
def test_what_a_target_takes_never_contradicts_whether_it_is_reached(seed: int, effort: float) -> None:
    rng = np.random.default_rng([3, seed])
    case = draw_case(rng, most_reports=1500)
    study, near = case.setting, float(rng.choice([0.9, 0.97, 0.99, 1.01, 1.03, 1.1]))
    given = {"population": case.population, "mechanism": "randomized-response", "effort": effort}
    found = plan(study, target_error=near * max(plan(study, **given).expected_error, 1e-3), **given)
    workers, epsilon = found.workers_needed or math.inf, found.epsilon_needed or math.inf
    assert (workers <= study.n_workers) == found.feasible
    assert (epsilon <= study.epsilon) == found.feasible
    assert effort > 0 or not (found.workers_simulated or found.epsilon_simulated)


def test_a_study_that_misses_its_target_is_not_told_to_take_fewer_workers() -> None:
    crowd = {"epsilon": 2.5, "n_workers": 92, "skill": "expert", "n_questions": 39, "protect_participation": True}
    found = plan(setting(Scale(0, 4), **crowd), target_error=0.0824, effort=0.5)
    assert not found.feasible
    assert found.workers_needed is not None
    assert found.workers_needed > 92
    assert found.epsilon_needed is not None
    assert found.epsilon_needed > 2.5
    assert found.workers_simulated
    assert found.epsilon_simulated
    more = plan(setting(Scale(0, 4), **crowd | {"n_workers": found.workers_needed}), effort=0.5)
    assert more.expected_error < 1.08 * 0.0824


def test_it_is_said_where_a_need_is_only_calculated() -> None:
    given = ("--options", "no,yes", "--epsilon", 1, "--workers", 20, "--questions", 10, "--target-error", 0.1)
    assert "both calculated only" in " ".join(crowdveil("plan", *given, "--effort", 0).stdout.split())
    assert "calculated only" not in " ".join(crowdveil("plan", *given).stdout.split())


@pytest.mark.parametrize("domain", [DIGITS, Choices(tuple("abc"))])
@pytest.mark.parametrize("protect", [False, True])
def test_population_error_is_the_simulated_one(domain: Choices | Scale, protect: bool) -> None:
    rng = np.random.default_rng(12)
    study = setting(domain, epsilon=1.0, n_workers=4000, share=0.5, protect_participation=protect)
    channel = mechanism("randomized-response", epsilon=1.0, protect_participation=protect).channel(domain)
    wanted = domain.numbers[None, :] if isinstance(domain, Scale) else np.eye(domain.size)
    scores = np.stack([channel.scores(row)[0] for row in wanted])
    ones = channel.scores(np.ones(domain.size))[0] if protect else np.ones(scores.shape[1])
    squares = []
    for _ in range(400):
        answers = rng.integers(0, domain.size, 4000)
        answered = rng.random(4000) < 0.5
        inputs = np.where(answered, answers, domain.size)[answered | protect]
        edges = np.cumsum(channel.table, axis=1)[inputs]
        reports = (rng.random(len(inputs))[:, None] > edges).sum(axis=1)
        estimate = scores[:, reports].sum(axis=1) / ones[reports].sum()
        squares.append(((estimate - wanted.mean(axis=1)) ** 2).mean())
    assert predict_population(study, channel).error == pytest.approx(math.sqrt(np.mean(squares)), rel=0.15)


def test_the_charge_of_a_study() -> None:
    assert study_charge(0.5, 40, 0.1, protect_participation=True).epsilon == 20
    assert study_charge(0.5, 40, 0.1, protect_participation=True, max_answers=6).epsilon == 6
    assert study_charge(0.5, 40, 0.1, protect_participation=True, max_answers=30).epsilon == 20
    visible = study_charge(0.5, 40, 0.1, protect_participation=False)
    assert (visible.unit, visible.epsilon) == ("vector", 2.0)
    with pytest.raises(InputError, match="bound on answers"):
        study_charge(0.5, 40, 0.1, protect_participation=False, max_answers=6)


@pytest.mark.parametrize(
    ("n_questions", "share", "answers"), [(5, 0.5, 3), (7, 0.5, 4), (100, 0.07, 7), (100, 0.071, 8), (3, 0.01, 1)]
)
def test_whoever_answers_as_many_as_planned_pays_no_more_than_the_charge(
    n_questions: int, share: float, answers: int
) -> None:
    charge = study_charge(0.1, n_questions, share, protect_participation=False)
    assert charge.epsilon >= answers * Fraction(0.1)
    assert charge.epsilon == pytest.approx(0.1 * answers)
    assert f"who answers {answers}, the average rounded up" in charge.sentence
    assert f"all {n_questions})" in charge.sentence


def test_a_charge_is_rounded_up() -> None:
    for protect in (False, True):
        epsilon = 0.0019433076194217325
        assert study_charge(epsilon, 470, 1.0, protect_participation=protect).epsilon >= 470 * Fraction(epsilon)


def test_least_finds_the_smallest_that_suffices() -> None:
    assert smallest_reaching(lambda x: 1 / x, 0.01, 1, 1e6) == pytest.approx(100, rel=0.02)
    assert smallest_reaching(lambda x: 1.0, 0.5, 1, 1e6) is None
    assert smallest_reaching(lambda x: 0.0, 0.5, 1, 1e6) == 1


def test_people_read_the_same() -> None:
    given = ("--options", "no,yes", "--epsilon", 1, "--workers", 50, "--skill", "good", "--effort", 0.2)
    done = crowdveil("plan", *given)
    assert done.returncode == 0
    assert done.stdout.startswith("feasible\n")
    assert "whole study, per worker" in done.stdout
    assert "times with channel-bp: ±" in done.stdout


@pytest.mark.parametrize(
    "flags",
    [
        ("--options", "no,yes", "--epsilon", 1, "--workers", 50, "--share", 0.3),
        ("--scale", "1:5", "--epsilon", 0.1, "--workers", 50, "--share", 0.3, "--protect-participation"),
    ],
)
def test_no_line_is_longer_than_eighty_columns(flags: tuple[object, ...]) -> None:
    printed = crowdveil("plan", *flags, "--effort", 0).stdout
    assert max(map(len, printed.splitlines())) <= 80
    whole = crowdveil_json("plan", *flags, "--effort", 0)
    assert f"method {whole['method']}: {whole['why']} whole study, per worker:" in " ".join(printed.split())


def test_a_plan_has_one_number_for_its_mechanism() -> None:
    found = plan(setting(Choices(tuple("abcdefgh")), epsilon=0.8, n_workers=60), effort=0.1)
    assert found.mechanism == "subset-selection"
    assert re.search(r"the least expected error rate \(randomized-response \d+ % more\)", found.why)


@pytest.mark.parametrize(
    ("tried", "words"),
    [
        ({"a": 0.2, "b": 0.25}, "a has the least expected error rate (b 25 % more)"),
        ({"a": 0.2, "b": 0.196}, "a is the simplest and within 3 % of the least expected error rate (b 2 % less)"),
        ({"a": 0.1, "b": 0.45}, "a has the least expected error rate (b 4.5 times as much)"),
        ({"a": 0.0, "b": 0.1}, "a has the least expected error rate (b more)"),
    ],
)
def test_alternatives_stand_beside_the_chosen_mechanism(tried: dict[str, float], words: str) -> None:
    channel = mechanism("randomized-response", epsilon=1.0).channel(YES)
    assert Recommendation("a", channel, tried).why("error rate") == words


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--epsilon", "0", "--workers", "5"], "epsilon must be a positive finite number"),
        (["--epsilon", "1e-300", "--workers", "5"], "no mechanism serves this domain"),
        (["--epsilon", "1", "--workers", "9" * 21], "n_workers must be from 1 to 1000000000"),
        (["--epsilon", "1", "--workers", "0"], "n_workers must be from 1 to"),
        (["--epsilon", "1", "--workers", "5", "--share", "0"], "share must be above 0"),
        (["--epsilon", "1", "--workers", "5", "--skill", "genius"], "skill must be one of expert"),
        (["--epsilon", "1", "--workers", "5", "--target-error", "-1"], "target error must be a positive"),
        (["--epsilon", "1", "--workers", "5", "--mechanism", "magic"], "mechanism must be one of"),
        (["--epsilon", "1", "--workers", "5", "--mechanism", "none"], "protects nothing"),
        (["--epsilon", "1", "--workers", "5", "--mechanism", "two-layer"], "never deployed"),
        (["--epsilon", "1", "--workers", "5", "--effort", "-1"], "effort must be from 0"),
        (
            ["--epsilon", "1", "--workers", "5", "--scale", "1:5", "--skill", "1e-300"],
            "or spreads, of the scale's own size",
        ),
        (
            ["--epsilon", "1", "--workers", "5", "--scale", "1:5", "--skill", "inf"],
            "or spreads, of the scale's own size",
        ),
    ],
)
def test_impossible_numbers_are_refused_in_one_sentence(flags: list[str], sentence: str) -> None:
    done = crowdveil("plan", *(() if "--scale" in flags else ("--options", "no,yes")), *flags)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_json_is_json_even_where_numbers_are_infinite() -> None:
    study = setting(Scale(0, 2), epsilon=0.01, n_workers=1, skill="1000")
    assert json.loads(json.dumps(plan(study).to_json(), allow_nan=False))["feasible"] is False
