"""Laws of every mechanism as a whole: what it reports, for whom, and what it promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.registry import RESEARCH, SHIPPED, SMALL, crowds

from crowdveil import Answers, Choices, Reports, Scale, entropy_from
from crowdveil.errors import InputError, UnservableError
from crowdveil.mechanisms import MECHANISMS, ChannelMechanism, Mechanism, mechanism

every_mechanism = pytest.mark.parametrize("name", list(MECHANISMS))
every_shipped_mechanism = pytest.mark.parametrize("name", SHIPPED)
some = settings(max_examples=20)
STARS = Scale(1, 5)


def built(name: str, protect: bool) -> Mechanism | None:
    """The mechanism, or None where it says that it cannot hide participation."""
    try:
        return mechanism(name, epsilon=1.0, protect_participation=protect, **SMALL.get(name, {}))
    except UnservableError:
        return None


def numbers(reports: Reports) -> np.ndarray:
    return reports.report if reports.number is None else reports.number


@every_mechanism
def test_what_is_missing_is_named(name: str) -> None:
    if name != "none":
        with pytest.raises(InputError, match=rf"{name} needs .*epsilon"):
            mechanism(name)


@every_mechanism
def test_what_ships_is_a_channel(name: str) -> None:
    assert issubclass(MECHANISMS[name], ChannelMechanism) is not MECHANISMS[name].research_only


@every_mechanism
@some
@given(answers=crowds())
def test_the_same_bytes_give_the_same_reports(name: str, answers: Answers) -> None:
    crowd = built(name, False)
    assert crowd is not None
    first, second = (crowd.randomize(answers, entropy_from(7)) for _ in range(2))
    assert np.array_equal(numbers(first), numbers(second))
    assert first.channels == second.channels


@every_mechanism
@some
@given(answers=crowds(), protect=st.booleans())
def test_protected_participation_expands_to_every_pair(name: str, answers: Answers, protect: bool) -> None:
    crowd = built(name, protect)
    if crowd is None:
        return
    reports = crowd.randomize(answers, entropy_from(1))
    pairs = set(zip(reports.worker.tolist(), reports.question.tolist(), strict=True))
    assert len(pairs) == len(reports)  # nobody reports twice
    if crowd.guarantee(answers.domain).protects_participation:
        assert len(reports) == len(answers.workers) * len(answers.questions)
    assert reports.domain == answers.domain
    assert list(reports.workers) == list(answers.workers)


@every_mechanism
@some
@given(answers=crowds(), shuffle=st.randoms(use_true_random=False))
def test_the_order_of_answering_never_shows_where_participation_is_hidden(
    name: str, answers: Answers, shuffle: object
) -> None:
    crowd = built(name, True)
    if crowd is None or not crowd.guarantee(answers.domain).protects_participation:
        return
    order = list(range(len(answers)))
    shuffle.shuffle(order)
    mixed = replace(
        answers, worker=answers.worker[order], question=answers.question[order], answer=answers.answer[order]
    )
    first, second = crowd.randomize(answers, entropy_from(3)), crowd.randomize(mixed, entropy_from(3))
    assert np.array_equal(first.worker, second.worker)
    assert np.array_equal(numbers(first), numbers(second))


@every_mechanism
@some
@given(answers=crowds())
def test_what_was_not_answered_is_not_reported_unless_participation_is_hidden(name: str, answers: Answers) -> None:
    crowd = built(name, False)
    assert crowd is not None
    promise = crowd.guarantee(answers.domain)
    if promise.protects_participation or name == "matrix-factorization":  # it predicts every question
        return
    assert len(crowd.randomize(answers, entropy_from(2))) == int((answers.answer >= 0).sum())


@every_shipped_mechanism
def test_a_report_is_at_least_as_private_as_asked(name: str) -> None:
    answers = Answers.from_rows([("w", "q", 3)], STARS)
    for protect in (False, True):
        crowd = built(name, protect)
        assert crowd is not None
        (channel,) = crowd.randomize(answers, entropy_from(1)).channels
        promise = crowd.guarantee(answers.domain)
        assert channel.guarantee.epsilon == promise.epsilon <= 1
        assert promise.delta == 0
        assert promise.protects_participation == protect
        assert promise.unit == ("cell" if protect else "value")
        assert not promise.research_only


@pytest.mark.parametrize("name", RESEARCH)
def test_research_mechanisms_say_so_and_explain_themselves(name: str) -> None:
    crowd = built(name, False)
    assert crowd is not None
    promise = crowd.guarantee(STARS)
    assert promise.research_only
    assert promise.note
    assert "research only" in str(promise)


@every_mechanism
def test_every_mechanism_introduces_itself(name: str) -> None:
    kind = MECHANISMS[name]
    assert kind.name == name
    assert 20 < len(kind.summary) < 120
    assert kind.__doc__
    assert not kind.summary.endswith(".")


def test_an_unknown_mechanism_or_parameter_is_refused_in_one_sentence() -> None:
    with pytest.raises(InputError, match=r"mechanism must be one of randomized-response, .*; got 'laplas'"):
        mechanism("laplas", epsilon=1)
    with pytest.raises(InputError, match="has the parameters epsilon, protect_participation; got 'sigma'"):
        mechanism("randomized-response", epsilon=1, sigma=2)


@pytest.mark.parametrize("name", ["discrete-laplace", "discrete-gaussian", "optimal-scale", "piecewise"])
def test_mechanisms_on_scales_send_options_elsewhere(name: str) -> None:
    with pytest.raises(UnservableError, match=f"mechanism {name} needs a scale of levels; got options; use randomized"):
        mechanism(name, epsilon=1).guarantee(Choices(("no", "yes")))
