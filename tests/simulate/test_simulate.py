"""Simulated crowds are what their numbers say."""

from __future__ import annotations

import tracemalloc
from itertools import combinations

import numpy as np
import pytest

from crowdveil import Choices, Scale
from crowdveil.errors import InputError
from crowdveil.simulate import PRESETS, ChoiceCrowd, ScaleCrowd, preset


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_drawn_again_from_its_seed(name: str) -> None:
    first, again, other = (preset(name).draw(seed) for seed in (5, 5, 6))
    assert np.array_equal(first.answers.answer, again.answers.answer)
    assert np.array_equal(first.truth, again.truth)
    assert not np.array_equal(first.truth, other.truth)


def test_sun_is_as_sparse_and_as_skilled_as_printed() -> None:
    crowd = preset("sun").draw(1)
    assert (len(crowd.answers.workers), len(crowd.answers.questions)) == (2000, 200)
    assert len(crowd.answers) / 400_000 == pytest.approx(0.1, abs=5 * np.sqrt(0.09 / 400_000))
    assert sorted(set(crowd.skill)) == [1.0, 5.0]
    assert (crowd.skill == 1.0).sum() == 1000
    assert crowd.truth.std() == pytest.approx(1.0, abs=0.25)


def test_peer_grading_has_the_counts_of_the_paper_and_is_about_as_hard() -> None:
    right = []
    for seed in range(40):
        crowd = preset("li-peer-grading").draw(seed)
        assert len(crowd.answers) == 360
        votes = np.zeros((26, 2))
        np.add.at(votes, (crowd.answers.question, crowd.answers.answer), 1)
        right.append(np.mean(votes.argmax(axis=1) == crowd.truth))
    assert np.mean(right) == pytest.approx(0.73, abs=0.04)


def test_experts_are_right_and_spammers_toss_a_coin() -> None:
    crowd = preset("wang-spammers").draw(2)
    right = (crowd.answers.grid() == crowd.truth).mean(axis=1)
    assert (right[crowd.skill == 1.0] == 1.0).all()
    assert (crowd.skill == 1.0).sum() == 17
    assert right[crowd.skill < 1].mean() == pytest.approx(0.5, abs=0.01)


def test_loki_workers_choose_levels_in_the_shares_of_the_trial() -> None:
    crowd = preset("loki", n_workers=20_000, n_questions=2).draw(3)
    shares = {name: (crowd.notes["level"] == name).mean() for name in ("none", "low", "medium", "high")}
    assert shares == pytest.approx({"none": 0.138, "low": 0.244, "medium": 0.389, "high": 0.229}, abs=0.02)


def test_a_biased_worker_names_a_favourite_option() -> None:
    recipe = ChoiceCrowd(n_workers=50, n_questions=400, domain=Choices(("a", "b", "c")), bias=1.0, share=1.0)
    assert all(len(set(row)) == 1 for row in recipe.draw(1).answers.grid())


def test_class_shares_are_kept() -> None:
    recipe = ChoiceCrowd(n_workers=1, n_questions=10_000, domain=Choices(("a", "b")), class_shares=(0.9, 0.1))
    assert (recipe.draw(1).truth == 0).mean() == pytest.approx(0.9, abs=0.015)


def test_truths_are_spelled_as_a_truth_file_spells_them() -> None:
    assert set(preset("li-peer-grading").draw(1).truths().values()) == {"satisfactory", "unsatisfactory"}
    truths = ScaleCrowd(n_workers=2, n_questions=3, domain=Scale(0, 9)).draw(1).truths()
    assert [float(text) for text in truths.values()] == pytest.approx(
        ScaleCrowd(n_workers=2, n_questions=3, domain=Scale(0, 9)).draw(1).truth.tolist()
    )


@pytest.mark.parametrize(
    "recipe",
    [
        ChoiceCrowd(n_workers=2000, n_questions=50_000, domain=Choices(("a", "b", "c")), share=0.01, bias=0.1),
        ScaleCrowd(n_workers=2000, n_questions=50_000, domain=Scale(0, 9), share=0.01, shift=0.1),
        ScaleCrowd(n_workers=5000, n_questions=50_000, domain=Scale(0, 9), answers_per_worker=200),
        ScaleCrowd(n_workers=1000, n_questions=5_000, domain=Scale(0, 9), answers_per_worker=1000),
    ],
    ids=["choices", "scale", "few answers each", "many answers each"],
)
def test_memory_grows_with_the_answers_and_not_with_the_cells(recipe: ChoiceCrowd | ScaleCrowd) -> None:
    tracemalloc.start()
    try:
        crowd = recipe.draw(1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(crowd.answers) > 990_000
    assert peak < 24 * len(crowd.answers)


def _frequency_of_sets(recipe: ScaleCrowd, seed: int) -> dict[tuple[int, ...], float]:
    """How often workers answered just these questions."""
    answered = recipe.draw(seed).answers.grid() >= 0
    return {
        tuple(np.flatnonzero(row).tolist()): count / len(answered)
        for row, count in zip(*np.unique(answered, axis=0, return_counts=True), strict=True)
    }


@pytest.mark.parametrize("share", [0.3, 0.02, 1.0])
def test_every_cell_is_answered_by_itself_with_the_same_probability(share: float) -> None:
    n_workers = 40_000
    recipe = ScaleCrowd(n_workers=n_workers, n_questions=3, domain=Scale(0, 9), share=share)
    frequency = _frequency_of_sets(recipe, 7)
    for size in range(4):
        for questions in combinations(range(3), size):
            expected = share**size * (1 - share) ** (3 - size)
            tolerance = 5 * np.sqrt(expected * (1 - expected) / n_workers) + 1e-12
            assert frequency.get(questions, 0.0) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("n_each", [2, 3, 5], ids=["by rejection", "by random keys", "everything"])
def test_all_sets_of_so_many_questions_are_alike(n_each: int) -> None:
    n_workers, sets = 40_000, list(combinations(range(5), n_each))
    recipe = ScaleCrowd(n_workers=n_workers, n_questions=5, domain=Scale(0, 9), answers_per_worker=n_each)
    frequency = _frequency_of_sets(recipe, 8)
    assert set(frequency) == set(sets)
    tolerance = 5 * np.sqrt((1 - 1 / len(sets)) / len(sets) / n_workers)
    assert list(frequency.values()) == pytest.approx([1 / len(sets)] * len(sets), abs=tolerance)


def test_answers_are_right_as_often_as_the_worker_is_able_and_wrong_evenly() -> None:
    recipe = ChoiceCrowd(
        n_workers=4, n_questions=400_000, domain=Choices(("a", "b", "c")), share=0.2, ability=(0.3, 0.9)
    )
    crowd = recipe.draw(9)
    off_by = (crowd.answers.answer - crowd.truth[crowd.answers.question]) % 3
    for worker, skill in enumerate(crowd.skill):
        chosen = off_by[crowd.answers.worker == worker]
        shares = np.bincount(chosen, minlength=3) / len(chosen)
        assert shares == pytest.approx([skill, (1 - skill) / 2, (1 - skill) / 2], abs=5 * 0.5 / np.sqrt(len(chosen)))


def test_ratings_scatter_around_truth_and_shift_as_the_worker_is_able() -> None:
    wide = Scale(-1000, 1000)
    recipe = ScaleCrowd(n_workers=4, n_questions=100_000, domain=wide, sigmas=(10.0, 50.0), shift=20.0, share=0.5)
    crowd = recipe.draw(10)
    error = wide.numbers[crowd.answers.answer] - crowd.truth[crowd.answers.question]
    for worker, sigma in enumerate(crowd.skill):
        own_errors = error[crowd.answers.worker == worker]
        assert own_errors.std() == pytest.approx(sigma, rel=5 / np.sqrt(2 * len(own_errors)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"share": 0.0}, "share must be above 0"),
        ({"n_workers": 0}, "workers must be from 1"),
        ({"size": 3}, "parameters"),
    ],
)
def test_a_crowd_that_cannot_be_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        preset("sun", **changes)
