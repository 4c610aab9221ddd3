"""Accuracy of the methods that know the channel, on real crowds (CROWDVEIL_DATA) and on Sun's synthetic one."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from crowdveil import Choices, Estimate, Reports, Scale
from crowdveil.entropy import entropy_from
from crowdveil.files import load_dataset
from crowdveil.inference import method
from crowdveil.inference.metrics import score
from crowdveil.mechanisms import mechanism
from crowdveil.simulate import preset

SEEDS = 20


@cache
def accuracies(dataset: str, epsilon: float) -> np.ndarray:
    """Seed × (majority, channel-bp, majority with ties shared), by randomised response at this ε."""
    answers, truth = load_dataset(dataset)
    first = secrets.randbelow(2**32)
    rows = []
    for seed in range(first, first + SEEDS):
        reports = mechanism("randomized-response", epsilon=epsilon).randomize(answers, entropy_from(seed))
        fits = [method(name).fit(reports) for name in ("majority", "channel-bp")]
        assert len(np.unique(fits[1].value)) > 1, f"seed {seed}: all questions have the same estimate"
        rows.append([*(score(fit, truth)["accuracy"] for fit in fits), shared_credit(fits[0], truth)])
    found = np.array(rows)
    names = "majority, channel-bp, majority if ties share their credit"
    print(f"\n{dataset} at ε = {epsilon}, seeds {first}..{first + SEEDS - 1}: {names}", found.mean(axis=0))
    return found


def shared_credit(estimate: Estimate, truth: Mapping[Hashable, object]) -> float:
    """The accuracy where each of several options with most votes gets its part of the credit."""
    shares = estimate.posterior
    assert shares is not None
    assert isinstance(estimate.domain, Choices)
    top = shares >= shares.max(axis=1, keepdims=True) - 1e-6
    credit = top / top.sum(axis=1, keepdims=True)
    place = {question: index for index, question in enumerate(estimate.questions.tolist())}
    option = {name: index for index, name in enumerate(estimate.domain.options)}
    return float(np.mean([credit[place[question], option[str(right)]] for question, right in truth.items()]))


@pytest.mark.parametrize("dataset", ["rte", "bluebird", "dog", "duchenne"])
@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4])
def test_channel_bp_is_never_below_majority_by_two_standard_errors(dataset: str, epsilon: float) -> None:
    found = accuracies(dataset, epsilon)
    # Both methods read the same reports, so that the error of their difference is that of the pairs.
    for other, against in ((0, "majority"), (2, "majority if ties share their credit")):
        gain = found[:, 1] - found[:, other]
        standard_error = gain.std(ddof=1) / np.sqrt(SEEDS)
        print(f"{dataset} at ε = {epsilon}: over {against} {gain.mean():+.4f}, standard error {standard_error:.4f}")
        # Less than one question is no difference. The vote gives ties to the option that stands first: on duchenne a
        # tenth of the questions tie even at ε = 4, and that option is the truth of nearly two thirds; it is worth .03
        # to the vote for no merit of its own, four questions of 159; without it channel-bp is ahead by .02.
        one_question = 1 / len(load_dataset(dataset)[1])
        assert gain.mean() >= -2 * standard_error - one_question


@pytest.mark.parametrize(("dataset", "epsilon", "least"), [("bluebird", 2, 0.83), ("duchenne", 4, 0.725)])
def test_channel_bp_reaches(dataset: str, epsilon: float, least: float) -> None:
    assert accuracies(dataset, epsilon)[:, 1].mean() >= least


@pytest.mark.parametrize("dataset", ["rte", "bluebird", "dog", "web"])
def test_channel_bp_is_close_to_dawid_skene_without_privacy(dataset: str) -> None:
    answers, truth = load_dataset(dataset)
    found = {
        name: score(method(name).fit(Reports.unprotected(answers)), truth)["accuracy"]
        for name in ("majority", "dawid-skene", "channel-bp")
    }
    print(f"\n{dataset} without privacy: {found}")
    assert found["channel-bp"] >= max(found["majority"], found["dawid-skene"] - 0.04)


@pytest.mark.parametrize(("truth", "most"), [("normal", 0.42), ("uniform", 0.40)])
def test_channel_em_on_the_synthetic_crowd_of_sun(truth: str, most: float) -> None:
    seed = secrets.randbelow(2**32)
    crowd = preset("sun", truth=truth).draw(seed)
    hidden = mechanism("randomized-response", epsilon=3, protect_participation=True)
    estimate = method("channel-em").fit(hidden.randomize(crowd.answers, entropy_from(seed)))
    error = np.abs(estimate.value - crowd.truth).mean()
    covered = ((estimate.low <= crowd.truth) & (crowd.truth <= estimate.high)).mean()
    print(f"\nsun, {truth} truths, ε = 3, seed {seed}: MAE {error:.3f} (at most {most}), covered {covered:.3f}")
    assert error <= most
    assert covered >= 0.88


def test_channel_em_on_word_senses_loses_almost_nothing_at_three() -> None:
    answers, truth = load_dataset("wsd", Scale(1, 3))
    answers = replace(answers, domain=Scale(0, 2))
    numbers = {question: float(text) - 1 for question, text in truth.items()}
    hidden = mechanism("randomized-response", epsilon=3, protect_participation=True)
    before = score(method("channel-em").fit(Reports.unprotected(answers)), numbers)["mae"]
    first, errors = secrets.randbelow(2**32), []
    for seed in range(first, first + SEEDS):
        estimate = method("channel-em").fit(hidden.randomize(answers, entropy_from(seed)))
        errors.append(score(estimate, numbers)["mae"])
    change = np.mean(errors) - before
    print(f"\nwsd at ε = 3, seeds {first}..: MAE {before:.3f} without privacy, change {change:+.3f} (at most .04)")
    assert change <= 0.04
