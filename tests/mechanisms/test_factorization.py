"""The factorisation mechanisms: right algebra, refusals where there is no minimiser, and the repaired guarantee."""

from __future__ import annotations

import numpy as np
import pytest

from crowdveil import Answers, Scale, entropy_from
from crowdveil.entropy import Keystream
from crowdveil.errors import InputError, UnservableError
from crowdveil.mechanisms import DenseFactorization, MatrixFactorization
from crowdveil.mechanisms.profiles import question_profiles

SCALE = Scale(0, 9)


def answers_of(counts: list[int], n_questions: int = 12) -> Answers:
    """Worker i answers the first counts[i] questions."""
    rows = [(i, j, (3 * i + j) % 10 if j < n else None) for i, n in enumerate(counts) for j in range(n_questions)]
    return Answers.from_rows(rows, SCALE)


@pytest.mark.parametrize("sign", ["signed", "positive"])
def test_public_profiles_have_columns_of_norm_one(sign: str) -> None:
    profiles = question_profiles(5, 40, sign=sign, seed=3)
    assert np.allclose(np.abs(profiles).sum(axis=0), 1)
    assert (profiles.min() >= 0) == (sign == "positive")
    assert not np.array_equal(profiles, question_profiles(5, 40, sign=sign, seed=4))


def test_without_noise_the_closed_form_is_least_squares() -> None:
    answers = answers_of([12, 9])
    crowd = MatrixFactorization(epsilon=1e12, factors=4)
    released = crowd.randomize(answers, entropy_from(1)).number.reshape(2, 12)
    profiles = question_profiles(4, 12, sign="signed", seed=0)
    for row, n in enumerate([12, 9]):
        values = SCALE.numbers[answers.grid()[row, :n]]
        fitted, *_ = np.linalg.lstsq(profiles[:, :n].T, values, rcond=None)
        assert np.allclose(released[row], fitted @ profiles, atol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_gradient_descent_reaches_the_closed_form(ridge: float) -> None:
    answers = answers_of([12, 10, 11])
    both = [
        MatrixFactorization(epsilon=2, factors=2, solver=solver, ridge=ridge, max_iter=50_000)
        for solver in ("closed-form", "gradient")
    ]
    # The descent also draws its start, so each worker is given a stream of their own.
    for worker in range(3):
        chosen = answers.worker == worker
        cells = zip(answers.question[chosen].tolist(), answers.answer[chosen].tolist(), strict=True)
        alone = Answers.from_rows([(0, question, None if code < 0 else code) for question, code in cells], SCALE)
        exact, descended = (crowd.randomize(alone, Keystream(worker)).number for crowd in both)
        assert np.allclose(exact, descended, atol=1e-4)


def test_noise_has_the_scale_that_the_guarantee_needs() -> None:
    n_questions, n_workers = 8, 4000
    rows = [(i, j, 5) for i in range(n_workers) for j in range(n_questions)]
    answers = Answers.from_rows(rows, SCALE)
    crowd = MatrixFactorization(epsilon=1, factors=2)
    reports = crowd.randomize(answers, entropy_from(5))
    released = reports.number.reshape(n_workers, n_questions)
    profiles = question_profiles(2, n_questions, sign="signed", seed=0)
    noise = (released - released.mean(axis=0)) @ np.linalg.pinv(profiles) @ (profiles @ profiles.T)
    # η ~ Laplace(9): variance 162 per factor; the kurtosis 6 of Laplace makes five sigma 25 %.
    assert np.allclose(noise.var(axis=0), 162, rtol=0.25)
    assert reports.channels[0].variance == pytest.approx(released.var(axis=0).mean(), rel=0.25)
    assert MatrixFactorization(epsilon=1, paper_scale=True).noise_scale(SCALE) == 10


def test_too_few_answers_are_refused_and_just_enough_earn_a_warning() -> None:
    with pytest.raises(UnservableError, match="worker 1 answered 3 questions, fewer than the 4 factors"):
        MatrixFactorization(epsilon=1, factors=4).randomize(answers_of([12, 3]), entropy_from(1))
    with pytest.warns(UserWarning, match="just as many questions as there are factors"):
        MatrixFactorization(epsilon=1, factors=4).randomize(answers_of([12, 4]), entropy_from(1))
    reports = MatrixFactorization(epsilon=1, factors=4, ridge=0.1).randomize(answers_of([12, 0]), entropy_from(1))
    assert len(reports) == 24


def test_only_the_dense_form_may_claim_to_hide_participation() -> None:
    with pytest.raises(UnservableError, match="use dense-factorization"):
        MatrixFactorization(epsilon=1, protect_participation=True)
    assert not MatrixFactorization(epsilon=1).guarantee(SCALE).protects_participation
    assert DenseFactorization(epsilon=1).guarantee(SCALE).protects_participation


def test_the_dense_release_has_one_public_shape_whatever_was_answered() -> None:
    crowd = DenseFactorization(epsilon=1, factors=3, fill=4)
    some, none = (crowd.randomize(answers_of([n]), entropy_from(9)).number for n in (5, 0))
    profiles = question_profiles(3, 12, sign="signed", seed=0)
    change = np.zeros(12)
    change[:5] = SCALE.numbers[answers_of([5]).grid()[0, :5]] - 4
    moved = np.linalg.solve(profiles @ profiles.T, profiles @ change) @ profiles
    # The same bytes give the same η, so the difference is that of the answers alone.
    assert np.allclose(some - none, moved)


def test_what_makes_no_sense_is_refused() -> None:
    for bad in ({"factors": 0}, {"ridge": -1.0}, {"solver": "magic"}, {"sign": "odd"}):
        with pytest.raises(InputError):
            MatrixFactorization(epsilon=1, **bad)
    for bad in ({"factors": 0}, {"ridge": -1.0}, {"sign": "odd"}):
        with pytest.raises(InputError):
            DenseFactorization(epsilon=1, **bad)
    with pytest.raises(UnservableError, match="give ridge or fewer factors"):
        DenseFactorization(epsilon=1, factors=20).randomize(answers_of([12]), entropy_from(1))
