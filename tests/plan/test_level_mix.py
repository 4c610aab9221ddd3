"""Several levels of privacy in one study: the planner's error beside that of whole mixed studies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from plan.simulated import answers_of, errors_of

from crowdveil import Choices, InputError, Reports, Scale, entropy_from
from crowdveil.channel import identity
from crowdveil.mechanisms import mechanism
from crowdveil.plan import CrowdPart, CrowdSkill, Setting, mix, predict

YES, THREE, STARS = Choices(("no", "yes")), Choices(tuple("abc")), Scale(1, 5)
LEVELS = (0.4, 0.8, 1.6)


def study(domain: Choices | Scale, n_workers: int = 30, *, protect: bool = False) -> Setting:
    crowd = CrowdSkill.from_name("mixed", domain)
    return Setting(domain, 1.0, n_workers, 0.7, crowd, n_questions=40, protect_participation=protect)


def channels(setting: Setting) -> list:
    hidden = {"protect_participation": setting.protect_participation}
    return [mechanism("randomized-response", epsilon=each, **hidden).channel(setting.domain) for each in LEVELS]


def mixed_study(
    setting: Setting, rng: np.random.Generator, *, population: bool
) -> tuple[np.ndarray, Reports, np.ndarray]:
    """One study in which every third worker is at each level."""
    truth, answers, skill = answers_of(setting, rng, population=population)
    level = rng.permutation(setting.n_workers) % len(LEVELS)
    hidden = {"protect_participation": setting.protect_participation}
    made = [mechanism("randomized-response", epsilon=each, **hidden) for each in LEVELS]
    tables = [each.randomize(answers, entropy_from(int(rng.integers(2**62)))) for each in made]
    kept = [table.rows(np.flatnonzero(level[table.worker] == place)) for place, table in enumerate(tables)]
    columns = (np.concatenate([getattr(table, name) for table in kept]) for name in ("worker", "question", "report"))
    place = np.repeat(np.arange(len(kept)), [len(table) for table in kept])
    used = tuple(table.channels[0] for table in tables)
    return truth, Reports(*columns, place, answers.workers, answers.questions, used, setting.domain), skill


@pytest.mark.parametrize("domain", [YES, THREE, STARS])
@pytest.mark.parametrize("protect", [False, True])
def test_a_mixed_study_has_the_error_that_was_foretold(domain: Choices | Scale, protect: bool) -> None:
    rng, setting = np.random.default_rng(3), study(domain, protect=protect)
    errors = np.array([errors_of(setting, *mixed_study(setting, rng, population=False)).mean() for _ in range(20)])
    foretold = mix(setting, [CrowdPart(channel, 10) for channel in channels(setting)])
    noise = math.hypot(errors.std() / math.sqrt(len(errors)), foretold.standard_error)
    assert foretold.error == pytest.approx(errors.mean(), abs=0.2 * errors.mean() + 3 * noise)
    assert noise < 0.12 * errors.mean()


@pytest.mark.parametrize("domain", [THREE, STARS])
@pytest.mark.parametrize("protect", [False, True])
def test_opinions_of_a_mixed_crowd_have_the_error_that_was_foretold(domain: Choices | Scale, protect: bool) -> None:
    rng, setting = np.random.default_rng(4), study(domain, 1500, protect=protect)
    drawn = [mixed_study(setting, rng, population=True) for _ in range(8)]
    squares = np.concatenate([errors_of(setting, *each, population=True) for each in drawn])
    foretold = mix(setting, [CrowdPart(channel, 500) for channel in channels(setting)], population=True)
    assert foretold.error == pytest.approx(math.sqrt(squares.mean()), rel=0.15)


def test_a_mix_of_equals_is_one_level() -> None:
    setting, channel = study(YES), mechanism("randomized-response", epsilon=1.0).channel(YES)
    alone, parts = (
        predict(setting, channel),
        mix(setting, [CrowdPart(channel, 15), CrowdPart(channel, 15), CrowdPart(channel, 0)]),
    )
    assert parts.error == pytest.approx(alone.error, abs=5 * math.hypot(alone.standard_error, parts.standard_error))
    assert mix(setting, [CrowdPart(channel, 30)]) == alone


def test_unprotected_workers_are_a_level_like_any_other() -> None:
    setting, channel = study(YES), mechanism("randomized-response", epsilon=0.5).channel(YES)
    assert mix(setting, [CrowdPart(channel, 25), CrowdPart(identity(YES), 5)]).error < predict(setting, channel).error
    hidden = study(YES, protect=True)
    protected = mechanism("randomized-response", epsilon=1.0, protect_participation=True).channel(YES)
    assert 0 < mix(hidden, [CrowdPart(protected, 50), CrowdPart(identity(YES), 10)]).error < 0.5


def test_a_mix_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InputError, match="at least one worker"):
        mix(study(YES), [])
    with pytest.raises(InputError, match="other answers"):
        mix(study(YES), [CrowdPart(identity(STARS), 5)])
