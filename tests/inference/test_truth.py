"""The law of the truths: what it is before anything is known, and within which bounds it moves."""

from __future__ import annotations

import numpy as np
import pytest

from crowdveil import Choices, Scale
from crowdveil.inference.priors.truth import TruthLaw
from crowdveil.inference.priors.truth_grid import truth_grid

GRID = truth_grid(Scale(0, 6))
FIRST = TruthLaw.first(GRID)


def test_without_questions_the_law_stays_the_first() -> None:
    assert FIRST.to_array() == pytest.approx([3, 3, 0.8, 0.2])
    assert FIRST.refit(GRID, np.zeros(len(GRID.points)), 0.5).to_array() == pytest.approx(FIRST.to_array())


def test_a_fifth_of_the_truths_are_levels_and_the_rest_anywhere_by_how_wide_a_point_is() -> None:
    line, levels = TruthLaw(3.0, 1.0, 1.0).parts(GRID)
    assert (line.sum(), levels.sum()) == (pytest.approx(0.8), pytest.approx(0.2))
    place, next_one = np.searchsorted(GRID.points, (3.0, 4.0))
    # One standard deviation from the middle a normal law is √e times as thin.
    assert levels[place] / levels[next_one] == pytest.approx(np.exp(0.5))
    assert line[place] / line[next_one] == pytest.approx(np.exp(0.5))
    # The last point stands for half as much of the line as the one before.
    thinner = np.exp(np.diff((GRID.points[:2] - 3) ** 2)[0] / 2)
    assert line[0] / line[1] == pytest.approx(thinner / 2)


def test_the_even_part_ends_half_a_level_beyond_the_scale() -> None:
    line, levels = TruthLaw(3.0, 1.0, 0.0).parts(GRID)
    held = GRID.points[line > 0]
    assert (held.min(), held.max()) == (pytest.approx(-0.5, abs=0.2), pytest.approx(6.5, abs=0.2))
    assert held.min() > -0.5
    assert held.max() < 6.5
    assert levels[GRID.levels] == pytest.approx(np.full(7, 0.2 / 7))


def test_a_narrow_law_far_from_every_level_still_says_which_is_nearer() -> None:
    """Twenty options below twenty and one at a million, truths half-way: no level is likelier than e^-700."""
    grid = truth_grid(Choices((*map(str, range(20)), "1000000")))
    law = TruthLaw(500_010.5, (0.25 * grid.gap) ** 2, 1.0)
    _, levels = law.parts(grid)
    assert levels.sum() == pytest.approx(0.2)
    assert levels[grid.levels[-1]] > levels[grid.levels[0]] > 0
    assert np.isfinite(law.refit(grid, law.weights(grid), 0.5).to_array()).all()


def test_pseudo_questions_count_as_many_as_they_are() -> None:
    """Ten questions between 4 and 5, and half a one of the first law, whose mean is 3."""
    counts = np.where((GRID.points >= 4) & (GRID.points <= 5), 1.0, 0.0)
    counts *= 10 / counts.sum()
    found = TruthLaw(3.0, 3.0, 1.0).refit(GRID, counts, 0.5)
    law = TruthLaw(found.mean, found.variance, 1.0).weights(GRID)
    assert law @ GRID.points == pytest.approx((10 * 4.5 + 0.5 * 3) / 10.5, abs=1e-5)
    assert found.normal == pytest.approx((10 + 5 * 0.8) / 15)


def test_the_normal_part_is_neither_narrower_than_a_quarter_level_nor_wider_than_the_first() -> None:
    one, ends = np.zeros((2, len(GRID.points)))
    one[GRID.levels[2]], ends[[0, -1]] = 1e6, 1e6
    assert FIRST.refit(GRID, one, 0.5).variance == pytest.approx(0.25**2)
    assert FIRST.refit(GRID, ends, 0.5).variance == pytest.approx(FIRST.variance)


def test_truths_that_all_seem_levels_still_leave_some_between_them() -> None:
    law, factor = TruthLaw(3.0, 1.0, 0.8, 1.0).unsure(0.0, 10)
    assert (law.levels, factor) == (pytest.approx(0.99), pytest.approx(1))
    assert TruthLaw(3.0, 1.0, 0.8, 0.01).unsure(0.0, 10)[0].levels == 0
