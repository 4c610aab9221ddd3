"""How much each worker answered where that is hidden: scores without bias, shares drawn to the crowd's."""

from __future__ import annotations

import numpy as np
import pytest

from crowdveil import Choices
from crowdveil.inference.observations.likelihood import build_emission
from crowdveil.inference.observations.response_rate import LEAST, MOST, answered_scores, count_answered, shares
from crowdveil.mechanisms import mechanism

ABC = Choices(("a", "b", "c"))
OPEN, HIDDEN = (
    mechanism("randomized-response", epsilon=1, protect_participation=hidden).channel(ABC) for hidden in (False, True)
)


def test_scores_are_1_of_an_answer_and_0_of_none_on_average() -> None:
    score, variance, hidden = answered_scores(build_emission((OPEN, HIDDEN), 3))
    assert hidden.tolist() == [False] * 3 + [True] * 4
    assert score[:3].tolist() == [1, 1, 1]
    assert variance[:3].tolist() == [0, 0, 0]
    given, silent = HIDDEN.table[:3].mean(axis=0), HIDDEN.table[3]
    assert given @ score[3:] == pytest.approx(1)
    assert silent @ score[3:] == pytest.approx(0)
    # Of four symbols three are answers, so that an answer is told from silence by less than silence from an answer.
    assert variance[3:] == pytest.approx([silent @ score[3:] ** 2] * 4)
    assert given @ score[3:] ** 2 - 1 < silent @ score[3:] ** 2


def test_the_score_of_a_coin_varies_as_that_of_a_coin() -> None:
    """One option or none, of which either is reported as the other with probability 1/(e + 1)."""
    channel = mechanism("randomized-response", epsilon=1, protect_participation=True).channel(Choices(("a",)))
    _, variance, _ = answered_scores(build_emission((channel,), 1))
    assert variance == pytest.approx([np.e / (np.e - 1) ** 2] * 2, rel=1e-6)


def test_only_reports_that_hide_participation_are_counted() -> None:
    emission = build_emission((OPEN, HIDDEN), 3)
    score, variance, _ = answered_scores(emission)
    found = count_answered(np.array([0, 2, 3, 6, 6]), np.array([0, 1, 1, 1, 2]), emission, 4)
    assert found["hidden"].tolist() == [0, 2, 1, 0]
    np.testing.assert_allclose(found["answered"], [0, score[3] + score[6], score[6], 0])
    np.testing.assert_allclose(found["noise"], np.array([0, 2, 1, 0]) * variance[3])


def told(hidden: list[float], answered: list[float], noise: list[float]) -> list[float]:
    columns = {"hidden": hidden, "answered": answered, "noise": noise}
    return shares({name: np.array(column) for name, column in columns.items()}).tolist()


def test_a_share_is_drawn_to_the_crowds_by_its_own_noise() -> None:
    # The crowd answered .4. A share varies by (100 + 100 · .24) / 100² = .0124 through noise and chance, the two found
    # by .2² = .04: of their distance from the crowd's, (.04 − .0124) / .04 = .69 is real.
    assert told([100, 100, 0], [20, 60, 0], [100, 100, 0]) == pytest.approx([0.262, 0.538, 1])


def test_who_reported_more_counts_more_in_the_crowds_share() -> None:
    assert told([100, 300], [20, 180], [1e6, 1e6]) == pytest.approx([0.5, 0.5])


def test_shares_are_never_nothing_nor_all() -> None:
    assert told([100, 100], [-50, 150], [0, 0]) == [LEAST, MOST]
    assert told([100, 100], [-50, -50], [9, 9]) == [LEAST, LEAST]
