"""Channel-aware methods: kernels against their plain twins, mixed channels, hidden participation, gold, warm starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crowdveil import Answers, Choices, InputError, Reports, Scale
from crowdveil.entropy import entropy_from
from crowdveil.inference import Auto, ChannelBP, ChannelEM, Frequency, Majority, Method, PopulationMean
from crowdveil.inference.engine.blocks import blocks_of, context_of
from crowdveil.inference.engine.local import LocalEngine
from crowdveil.inference.kernels import message_state as channel_layout
from crowdveil.inference.kernels import messages as channel_kernels
from crowdveil.inference.kernels import messages_reference as channel_plain
from crowdveil.inference.methods.frequency import project
from crowdveil.inference.models.message_passing import skills_of
from crowdveil.inference.observations.numeric import counts_of
from crowdveil.inference.priors.worker_types import worker_types
from crowdveil.mechanisms import mechanism
from crowdveil.simulate import ChoiceCrowd, Crowd, ScaleCrowd
from crowdveil.simulate.crowd import numbered_answers


def choices(seed: int = 1, n_options: int = 3, **changes: object) -> Crowd:
    domain = Choices(tuple("abcdefgh"[:n_options]))
    recipe = ChoiceCrowd(n_workers=40, n_questions=60, domain=domain, ability=(0.4, 0.95), share=0.5)
    return replace(recipe, **changes).draw(seed)


def ratings(seed: int = 1, **changes: object) -> Crowd:
    recipe = ScaleCrowd(n_workers=60, n_questions=40, domain=Scale(0, 6), sigmas=(0.7, 2.0), share=0.4, truth="uniform")
    return replace(recipe, **changes).draw(seed)


def randomised(crowd: Crowd, epsilon: float, *, hidden: bool = False, name: str = "randomized-response") -> Reports:
    chosen = mechanism(name, epsilon=epsilon, protect_participation=hidden)
    return chosen.randomize(crowd.answers, entropy_from(7))


def mixed(crowd: Crowd, *epsilons: float) -> Reports:
    """Each worker's reports through one of several channels, hidden participation among them."""
    tables = [randomised(crowd, epsilon, hidden=index == 1) for index, epsilon in enumerate(epsilons)]
    kept = [table.rows(np.flatnonzero(table.worker % len(tables) == index)) for index, table in enumerate(tables)]
    return Reports(
        *(np.concatenate([getattr(table, name) for table in kept]) for name in ("worker", "question", "report")),
        np.repeat(np.arange(len(kept), dtype=np.int16), [len(table) for table in kept]),
        crowd.answers.workers,
        crowd.answers.questions,
        tuple(table.channels[0] for table in tables),
        crowd.answers.domain,
    )


@pytest.mark.parametrize("method", [ChannelBP(max_iter=6), ChannelEM(max_iter=6)], ids=lambda method: method.name)
@pytest.mark.parametrize("hidden", [False, True])
def test_compiled_and_plain_sweeps_agree(method: Method, hidden: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = choices() if isinstance(method, ChannelBP) else ratings()
    reports = randomised(crowd, 2.0, hidden=hidden)
    found = []
    for kernels in (channel_kernels, channel_plain):
        monkeypatch.setattr(channel_layout, "message_kernels", lambda kernels=kernels: kernels)
        for module in ("models.worker_type", "methods.channel_em"):
            monkeypatch.setattr(f"crowdveil.inference.{module}.message_kernels", lambda kernels=kernels: kernels)
        found.append(method.fit(reports))
    np.testing.assert_allclose(found[0].trace, found[1].trace, rtol=1e-2, atol=1e-5)
    np.testing.assert_allclose(found[0].value, found[1].value, atol=1e-3)
    np.testing.assert_allclose(found[0].skills.skill, found[1].skills.skill, atol=1e-3)


def test_products_of_many_small_chances_do_not_vanish(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ten-thousandth, sixteen times, is nothing in single precision."""
    rng = np.random.default_rng(2)
    worker, question = np.repeat(np.arange(4), 100), np.tile(np.arange(100), 4)
    domain = Choices(tuple(f"option {code}" for code in range(300)))
    answers = Answers(worker, question, rng.integers(0, 300, 400), np.arange(4), np.arange(100), domain)
    reports, found = Reports.unprotected(answers), []
    model = ChannelBP(precision="float32").model(context_of(reports))
    for kernels in (channel_kernels, channel_plain):
        monkeypatch.setattr("crowdveil.inference.models.worker_type.message_kernels", lambda kernels=kernels: kernels)
        session = LocalEngine(threads=1).open(model, reports)
        parameters = model.m_step(session.e_pass({}), {})
        found.append(session.e_pass(parameters)["messages"])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)


def test_worker_types_are_laws_of_answers() -> None:
    for n_options in (1, 2, 3, 5, 30):
        types = worker_types(n_options)
        confusion = (
            types.ability[:, None, None] * np.eye(n_options)
            + (1 - types.ability)[:, None, None] * (types.leaning[:, None, :])
        )
        assert (confusion >= 0).all()
        np.testing.assert_allclose(confusion.sum(axis=2), 1)
        assert types.share.sum() == pytest.approx(1)


def test_a_skill_lies_in_its_interval_also_where_one_kind_has_nearly_all_belief() -> None:
    found = skills_of(np.array([[0.985, 0.015, 0.0], [0.2, 0.3, 0.5]]), np.array([0.5, 0.9, 0.1]), "skill")
    np.testing.assert_allclose(found.skill, [0.506, 0.42])
    # Kinds stand for the skills from .1 to .3, to .7 and to .9.
    np.testing.assert_allclose(found.low, [0.3 + 0.4 * 0.025 / 0.985, 0.1 + 0.2 * 0.025 / 0.5])
    np.testing.assert_allclose(found.high, [0.3 + 0.4 * 0.975 / 0.985, 0.7 + 0.2 * 0.275 / 0.3])


def test_workers_with_different_epsilon_and_mechanisms_mix() -> None:
    crowd = choices(n_options=2, n_workers=90)
    estimate = ChannelBP().fit(mixed(crowd, 3.0, 2.0, 1.0))
    assert (estimate.value == crowd.truth).mean() > 0.85
    numbers = ratings(n_workers=300)
    found = ChannelEM().fit(mixed(numbers, 4.0, 3.0, 2.0))
    assert np.abs(found.value - numbers.truth).mean() < 0.6


@pytest.mark.parametrize("name", ["discrete-laplace", "optimal-scale", "subset-selection", "discrete-gaussian"])
@pytest.mark.parametrize("hidden", [False, True])
def test_any_channel_with_a_table_will_do(name: str, hidden: bool) -> None:
    crowd = ratings(n_workers=200, share=0.8)
    estimate = ChannelEM().fit(randomised(crowd, 3.0, hidden=hidden, name=name))
    constant = np.abs(crowd.truth - np.median(crowd.truth)).mean()
    assert np.abs(estimate.value - crowd.truth).mean() < 0.6 * constant


@pytest.mark.parametrize("epsilon", [None, 3.0])
def test_truths_that_are_nearly_all_at_one_end_are_found_there(epsilon: float | None) -> None:
    rng = np.random.default_rng(31)
    truth = np.where(rng.random(180) < 0.9, 0, rng.integers(1, 7, 180)).astype(float)
    grid = np.clip(np.rint(truth + 0.3 * rng.standard_normal((30, 180))), 0, 6).astype(np.int32)
    worker, question = np.nonzero(rng.random((30, 180)) < 0.5)
    answers = numbered_answers(worker, question, grid[worker, question], 30, 180, Scale(0, 6))
    crowd = Crowd(answers, truth, np.full(30, 0.3))
    reports = Reports.unprotected(crowd.answers) if epsilon is None else randomised(crowd, epsilon)
    assert np.abs(ChannelEM().fit(reports).value - truth).mean() < 0.1


def test_truths_on_the_scale_are_the_latent_ones_clipped_to_it() -> None:
    crowd = ratings(truth="normal", n_workers=150)
    reports = randomised(crowd, 3.0, hidden=True)
    anywhere, on_scale = (ChannelEM(truths=truths).fit(reports) for truths in ("anywhere", "on-scale"))
    assert (anywhere.value < 0).any()
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(getattr(on_scale, name), np.clip(getattr(anywhere, name), 0, 6))
    within = np.clip(crowd.truth, 0, 6)
    assert ((on_scale.low <= within) & (within <= on_scale.high)).mean() > 0.85
    with pytest.raises(InputError, match="truths must be anywhere or on-scale; got 'below'"):
        ChannelEM(truths="below")


def test_subsets_are_read_as_options_too() -> None:
    crowd = choices(n_options=5, n_workers=150, share=0.8)
    estimate = ChannelBP().fit(randomised(crowd, 1.5, name="subset-selection"))
    assert (estimate.value == crowd.truth).mean() > 0.85


def test_classes_can_be_held_equally_likely() -> None:
    crowd = choices(n_options=2, class_shares=(0.9, 0.1), n_questions=200)
    reports = randomised(crowd, 1.0)
    learned, even = (
        np.exp(ChannelBP(classes=kind).fit(reports).parameters["log_classes"]) for kind in ("learned", "even")
    )
    assert learned[0] > 0.7
    np.testing.assert_allclose(even, 0.5)
    with pytest.raises(InputError, match="classes must be weighed, learned or even; got 'odd'"):
        ChannelBP(classes="odd")


def test_gold_questions_stay_what_they_are_known_to_be() -> None:
    crowd = choices()
    wrong = {str(question): "a" for question in crowd.answers.questions[:5]}
    estimate = ChannelBP(gold=wrong).fit(randomised(crowd, 1.0))
    assert (estimate.value[:5] == 0).all()


def test_gold_holds_where_reports_cannot_tell_and_before_any_sweep() -> None:
    domain = Choices(("no", "yes"))
    channel = mechanism("randomized-response", epsilon=0.05).channel(domain)
    reports = Reports.from_rows([(w, q, 1, 0) for w in "abc" for q in ("q", "r")], (channel,), domain)
    assert ChannelBP(gold={"q": "no", "r": "yes"}).fit(reports).values() == ["no", "yes"]
    plain = Reports.unprotected(Answers.from_rows([("a", "q", "no"), ("b", "q", "no")], domain))
    for classes in ("weighed", "learned"):
        assert ChannelBP(gold={"q": "yes"}, max_iter=1, classes=classes).fit(plain).values() == ["yes"]


@pytest.mark.parametrize("method", [ChannelBP(), ChannelEM()], ids=lambda method: method.name)
def test_a_warm_start_arrives_at_the_cold_result_sooner(method: Method) -> None:
    crowd = choices() if isinstance(method, ChannelBP) else ratings()
    reports = randomised(crowd, 3.0)
    part = reports.rows(np.flatnonzero(reports.worker < 36))
    cold, warm = method.fit(reports), method.fit(reports, method.fit(part))
    assert warm.iterations <= cold.iterations
    np.testing.assert_allclose(warm.value, cold.value, atol=0.02)


def test_a_question_with_far_more_reports_than_most_keeps_its_own_estimate() -> None:
    rng = np.random.default_rng(4)
    n_reports = np.where(np.arange(300) < 10, 250, 2)
    question = np.repeat(np.arange(300), n_reports)
    worker = np.concatenate([rng.choice(400, n, replace=False) for n in n_reports])
    truth = np.arange(300) % 2
    right = rng.random(len(question)) < 0.9
    answer = np.where(right, truth[question], 1 - truth[question])
    answers = Answers(worker, question, answer, np.arange(400), np.arange(300), Scale(0, 1))
    estimate = ChannelEM().fit(mechanism("randomized-response", epsilon=0.3).randomize(answers, entropy_from(seed=5)))
    assert estimate.floor is not None
    assert not estimate.floor.informative
    assert len(np.unique(estimate.value[10:])) == 1
    assert (np.rint(estimate.value[:10]) == truth[:10]).mean() >= 0.8


@pytest.mark.parametrize("method", [ChannelBP(), ChannelEM()], ids=lambda method: method.name)
def test_a_block_knows_how_many_reports_came_through_each_channel(method: Method) -> None:
    crowd = choices() if isinstance(method, ChannelBP) else ratings()
    reports = mixed(crowd, 3.0, 2.0, 1.0)
    model = method.model(context_of(reports))
    block = next(blocks_of(reports, 1))
    np.testing.assert_array_equal(model.by_channel(model.begin(block)), counts_of(reports, 3))


@pytest.mark.parametrize("method", [ChannelBP(), ChannelEM()], ids=lambda method: method.name)
def test_reports_that_cannot_tell_give_the_prior_and_say_so(method: Method) -> None:
    crowd = choices() if isinstance(method, ChannelBP) else ratings()
    estimate = method.fit(randomised(crowd, 0.01))
    assert estimate.floor is not None
    assert not estimate.floor.informative
    assert estimate.floor.sentence in estimate.warnings
    assert len(set(estimate.value.tolist())) == 1
    clear = method.fit(randomised(crowd, 4.0))
    assert clear.floor is not None
    assert clear.floor.informative
    assert clear.floor.smallest_error < clear.floor.prior_error


def test_shares_projected_on_the_simplex_are_the_nearest_shares() -> None:
    rng = np.random.default_rng(3)
    raw = rng.normal(0.3, 0.5, size=(200, 4))
    found = project(raw)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found >= 0).all()
    others = rng.dirichlet(np.ones(4), size=500)
    nearest = ((raw[:, None] - others) ** 2).sum(axis=2).min(axis=1)
    assert (((raw - found) ** 2).sum(axis=1) <= nearest + 1e-12).all()


def test_frequency_is_exact_without_privacy() -> None:
    crowd = choices()
    counts = np.zeros((60, 3))
    np.add.at(counts, (crowd.answers.question, crowd.answers.answer), 1)
    estimate = Frequency().fit(Reports.unprotected(crowd.answers))
    np.testing.assert_allclose(estimate.posterior, counts / counts.sum(axis=1, keepdims=True))


def by_level(shift: float, seed: int) -> Reports:
    """400 workers at two levels of privacy; those who choose more think differently by `shift`."""
    rng = np.random.default_rng(seed)
    opinion = np.clip(np.rint(rng.normal(3, 1, (400, 20)) + shift * (np.arange(400)[:, None] % 2)), 1, 5)
    rows = [(w, q, int(opinion[w, q])) for w in range(400) for q in range(20)]
    answers = Answers.from_rows(rows, Scale(1, 5))
    tables = [
        mechanism("randomized-response", epsilon=epsilon).randomize(answers, entropy_from(seed)) for epsilon in (4, 1)
    ]
    kept = [table.rows(np.flatnonzero(table.worker % 2 == level)) for level, table in enumerate(tables)]
    return Reports(
        *(np.concatenate([getattr(table, name) for table in kept]) for name in ("worker", "question", "report")),
        np.repeat(np.arange(2, dtype=np.int16), [len(table) for table in kept]),
        answers.workers,
        answers.questions,
        tuple(table.channels[0] for table in tables),
        answers.domain,
    )


def test_levels_that_think_alike_are_weighted_by_their_noise() -> None:
    chosen = [PopulationMean().fit(by_level(0.0, seed)).provenance["weighting"] for seed in range(20)]
    assert chosen.count("inverse-variance") >= 16


def test_levels_that_think_differently_count_by_their_workers_and_it_is_said() -> None:
    estimate = PopulationMean().fit(by_level(0.6, 1))
    assert estimate.provenance["weighting"] == "stratified"
    assert "do not think alike" in estimate.warnings[0]


def test_auto_says_what_it_chose_and_why() -> None:
    crowd, numbers = choices(), ratings()
    private, scale = Auto().fit(randomised(crowd, 2.0)), Auto().fit(randomised(numbers, 2.0))
    assert (private.method, scale.method) == ("channel-bp", "channel-em")
    assert Auto().fit(Reports.unprotected(choices(n_questions=200).answers)).method == "dawid-skene"
    noisy = mechanism("gaussian", sigma=2.0).randomize(numbers.answers, entropy_from(1))
    assert Auto().fit(noisy).method == "weighted-mean"
    assert private.warnings[0].startswith("auto chose channel-bp: ")
    assert private.provenance["chosen_by"] == "auto"


@pytest.mark.parametrize("seed", range(3))
def test_a_crowd_that_leans_to_an_option_is_not_taken_for_lopsided_classes(seed: int) -> None:
    rng, shape = np.random.default_rng(seed), (40, 120)
    truth = rng.integers(2, size=shape[1])
    grid = np.where(rng.random(shape) < 0.4, truth, rng.random(shape) < 0.8)
    worker, question = (place.astype(np.int32) for place in np.nonzero(rng.random(shape) < 0.3))
    domain = Choices(("no", "yes"))
    answers = Answers(worker, question, grid[worker, question], np.arange(shape[0]), np.arange(shape[1]), domain)
    reports = mechanism("randomized-response", epsilon=3).randomize(answers, entropy_from(seed))
    vote, ours = ((method.fit(reports).value == truth).mean() for method in (Majority(), ChannelBP()))
    assert ours > vote + 0.05
