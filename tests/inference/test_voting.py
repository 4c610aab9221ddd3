"""Voting methods: ties, channels that mix, weights, and Wang & Xu's rescaling."""

from __future__ import annotations

import numpy as np
import pytest
from inference.crowds import choice_crowd, protected

from crowdveil import Answers, Choices, InputError, Reports, identity
from crowdveil.inference import Majority, PrivateDawidSkene, WeightedVote, method
from crowdveil.inference.observations.debiasing import answering, channel_worth, effective_counts, unbiased_votes
from crowdveil.mechanisms import mechanism


def test_a_tie_goes_to_the_option_that_stands_first() -> None:
    rows = [("ada", "q", "c"), ("bob", "q", "b"), ("cy", "q", "c"), ("dee", "q", "b")]
    for options, winner in ((("a", "b", "c"), "b"), (("c", "b", "a"), "c")):
        reports = Reports.unprotected(Answers.from_rows(rows, Choices(options)))
        assert Majority().fit(reports).values() == [winner]


@pytest.mark.parametrize(("n_tied", "n_all", "told"), [(0, 20, False), (1, 20, False), (2, 20, True), (1, 1, True)])
def test_many_ties_are_told_of(n_tied: int, n_all: int, told: bool) -> None:
    rows = [(worker, n, "b") for n in range(n_all) for worker in ("ada", "bob")]
    rows += [(worker, n, "c") for n in range(n_tied) for worker in ("cy", "dee")]
    warnings = Majority().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("a", "b", "c"))))).warnings
    said = f"{n_tied} of {n_all} questions are tied and went to the option that stands first"
    assert (said in warnings) == told
    assert any("tied" in warning for warning in warnings) == told


def test_votes_of_mixed_channels_are_unbiased() -> None:
    domain = Choices(("a", "b", "c"))
    loud, quiet = (mechanism("randomized-response", epsilon=epsilon).channel(domain) for epsilon in (2.0, 0.5))
    channels = (identity(domain), loud, quiet)
    for answer in range(3):
        # Every report with its probability, as a fraction of a vote: the expectation, without drawing anything.
        expected = sum(channel.table[answer] @ channel.votes[:, :3] for channel in channels)
        np.testing.assert_allclose(expected, 3 * np.eye(3)[answer], atol=1e-9)
    rows = [("ada", "q", 0, 0), ("bob", "q", 0, 1), ("cy", "q", 1, 2)]
    reports = Reports.from_rows(rows, channels, domain)
    total = sum(
        channel_worth(channel) * channel.votes[report] for channel, report in zip(channels, (0, 0, 1), strict=True)
    )
    np.testing.assert_allclose(unbiased_votes(reports, channels, 1, 3)[0], total)
    assert 1 < effective_counts(reports, channels, 1)[0] < 3
    # A report at ε = 0.5 has votes of about ±3, and still does not outvote two clear ones.
    assert Majority().fit(reports).values() == ["a"]


@pytest.mark.parametrize("epsilon", [1.0, 0.01, 1e-6])
@pytest.mark.parametrize("weighing", ["log-odds", "linear", "crh", "catd"])
def test_votes_that_weigh_next_to_nothing_are_no_tie(weighing: str, epsilon: float) -> None:
    domain = Choices(("no", "yes"))
    channel = mechanism("randomized-response", epsilon=epsilon).channel(domain)
    alike = Reports.from_rows([(f"w{index}", "q", 1, 0) for index in range(8)], (channel,), domain)
    assert method("weighted-vote", weighing=weighing).fit(alike).values() == ["yes"]
    mixed = Reports.from_rows([("ada", "q", 1, 0), ("bob", "r", 0, 1)], (channel, identity(domain)), domain)
    assert Majority().fit(mixed).values() == ["yes", "no"]


@pytest.mark.parametrize("given", [0.0, 0.4, 1.0])
def test_who_answers_is_told_from_reports_that_hide_it_not_from_the_others(given: float) -> None:
    domain = Choices(("a", "b"))
    hiding = mechanism("randomized-response", epsilon=1.0, protect_participation=True).channel(domain)
    channels, weights = (identity(domain), hiding), np.array([1.0, 0.3])
    counts = np.array([[8.0, 0.0, 5.0], [20.0, 20.0, 0.0]])
    # What is expected of the votes: all open reports, and of the hiding ones those that are answers.
    total = weights[0] * counts[0] + given * weights[1] * counts[1]
    np.testing.assert_allclose(answering(total, counts, channels, weights), [given, given, 1.0], atol=1e-12)


def test_large_outputs_are_counted_like_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = protected(choice_crowd(1, n_questions=30)[0], 1.0, 2)
    channels = reports.channels
    counted = unbiased_votes(reports, channels, 30, 3)
    wide = unbiased_votes(reports, channels, 200_000, 3)
    np.testing.assert_allclose(wide[:30], counted, atol=1e-9)


@pytest.mark.parametrize("weighing", ["log-odds", "linear", "crh", "catd"])
def test_weighted_votes_beat_plain_ones_when_skills_differ(weighing: str) -> None:
    answers, truth = choice_crowd(2, n_questions=400, skill=(0.2, 0.95), n_options=2, per_question=7)
    reports = Reports.unprotected(answers)
    plain = (Majority().fit(reports).value == truth).mean()
    weighted = WeightedVote(weighing=weighing).fit(reports)
    assert (weighted.value == truth).mean() >= plain
    assert weighted.converged
    assert weighted.trace[-1] == 0


def test_weights_rank_workers_by_their_skill() -> None:
    answers, truth = choice_crowd(3, n_questions=600, n_workers=20)
    fitted = WeightedVote().fit(Reports.unprotected(answers))
    right = np.bincount(answers.worker, answers.answer == truth[answers.question]) / np.bincount(answers.worker)
    assert fitted.skills is not None
    assert np.corrcoef(fitted.skills.skill, right)[0, 1] > 0.95


def test_reading_reports_as_answers_is_what_the_paper_does() -> None:
    reports = protected(choice_crowd(4, n_options=2)[0], 1.0, 5)
    labels = Reports.unprotected(Answers(reports.worker, reports.question, reports.report, reports.workers, reports.questions, reports.domain))  # fmt: skip  # noqa: E501
    raw, plain = WeightedVote(as_answers=True).fit(reports), WeightedVote().fit(labels)
    assert raw.value.tolist() == plain.value.tolist()


def test_private_abilities_are_rescaled_to_those_of_the_answers() -> None:
    answers, truth = choice_crowd(5, n_options=2, n_questions=4000, n_workers=20, per_question=12, skill=(0.6, 0.95))
    fitted = PrivateDawidSkene().fit(protected(answers, 1.0, 6))
    right = np.bincount(answers.worker, answers.answer == truth[answers.question]) / np.bincount(answers.worker)
    assert fitted.skills is not None
    assert np.abs(fitted.skills.skill - right).mean() < 0.05
    inside = (fitted.skills.low <= right) & (right <= fitted.skills.high)
    assert inside.mean() >= 0.8


def test_private_dawid_skene_follows_the_printed_equations() -> None:
    answers, _ = choice_crowd(6, n_options=2, n_workers=15, n_questions=30, per_question=15)
    reports = protected(answers, 1.0, 7)
    fitted = PrivateDawidSkene(max_iter=4, tol=-1.0, precision="float64", margin=0.05).fit(reports)
    seen = np.full((15, 30), 0)
    seen[reports.worker, reports.question] = reports.report
    soft = seen.mean(axis=0)
    for _ in range(4):
        ability = np.clip((seen * soft + (1 - seen) * (1 - soft)).mean(axis=1), 0.05, 0.95)[:, None]
        yes = np.prod(np.where(seen == 1, ability, 1 - ability), axis=0)
        no = np.prod(np.where(seen == 1, 1 - ability, ability), axis=0)
        soft = yes / (yes + no)
    assert fitted.posterior is not None
    np.testing.assert_allclose(fitted.posterior[:, 1], soft, atol=1e-9)


def test_what_a_method_is_not_for_is_refused_with_an_alternative() -> None:
    three = Reports.unprotected(choice_crowd(7, n_options=3)[0])
    with pytest.raises(InputError, match="two options; got 3; use one-coin"):
        PrivateDawidSkene().fit(three)
    hidden = protected(choice_crowd(7, n_options=2, n_questions=5)[0], 1.0, 1, protect_participation=True)
    with pytest.raises(InputError, match="which read any channel"):
        PrivateDawidSkene().fit(hidden)
    with pytest.raises(InputError, match="weighing must be log-odds, linear, crh or catd; got 'guess'"):
        WeightedVote(weighing="guess")
    with pytest.raises(InputError, match="precision must be auto, float32 or float64; got 'half'"):
        method("one-coin", precision="half").fit(three)
    with pytest.raises(InputError, match="method must be one of"):
        method("oracle")
    with pytest.raises(InputError, match="has no parameters; got 'depth'"):
        method("majority", depth=3)
    with pytest.raises(InputError, match="max_iter must be at least 1"):
        method("dawid-skene", max_iter=0)


@pytest.mark.parametrize("name", ["majority", "weighted-vote", "dawid-skene", "one-coin", "private-dawid-skene"])
def test_it_is_said_when_reports_cannot_tell_more_than_the_prior(name: str) -> None:
    answers, _ = choice_crowd(8, n_options=2, n_questions=300, per_question=4)
    clear, blurred = (method(name).fit(protected(answers, epsilon, 1)) for epsilon in (3.0, 0.01))
    assert clear.floor is not None
    assert clear.floor.informative
    assert blurred.floor is not None
    assert not blurred.floor.informative
    assert any("cannot say more" in warning for warning in blurred.warnings)


@pytest.mark.parametrize(
    "name", ["majority", "weighted-vote", "dawid-skene", "one-coin", "private-dawid-skene", "channel-bp"]
)
def test_twenty_workers_at_a_hundredth_cannot_tell_and_the_floor_is_no_promise(name: str) -> None:
    """Debiased votes of so few noisy reports look unanimous; no error rate of 0 may be read off them."""
    answers, _ = choice_crowd(9, n_options=2, n_questions=5, per_question=20)
    for seed in range(5):
        told = method(name).fit(protected(answers, 0.01, seed))
        assert told.floor is not None
        assert told.floor.smallest_error > 0.4
        assert not told.floor.informative
        assert told.warnings
