"""Cross-tabulation through the product channel: exact without privacy, unbiased with it, intervals that hold."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil import Answers, Choices, Reports
from crowdveil.channel import Channel, identity
from crowdveil.entropy import entropy_from
from crowdveil.errors import ChannelError, InputError
from crowdveil.inference.crosstab import Crosstab, cell_shares, conditional_shares, crosstab, joint_distribution
from crowdveil.inference.joint_distribution import Difference
from crowdveil.inference.uncertainty.summaries import QUANTILE
from crowdveil.mechanisms import RandomizedResponse, mechanism

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from joint_coverage import KINDS, covered, draw

YES_NO = Choices(("no", "yes"))


def paired(pairs: list[tuple[str | None, str | None]], domain: Choices = YES_NO) -> Answers:
    rows = [(f"w{i:05}", name, answer) for i, pair in enumerate(pairs) for name, answer in zip("ab", pair, strict=True)]
    return Answers.from_rows(rows, domain)


def table_of(counts: list[list[int]]) -> Crosstab:
    pairs = [
        (YES_NO.options[row], YES_NO.options[column])
        for row, line in enumerate(counts)
        for column, count in enumerate(line)
        for _ in range(count)
    ]
    return crosstab(Reports.unprotected(paired(pairs)), "a", "b")


def test_answers_without_privacy_are_counted() -> None:
    table = table_of([[10, 20], [30, 40]])
    assert table.n_workers == 100
    np.testing.assert_allclose(table.cells.estimate, [[0.1, 0.2], [0.3, 0.4]], atol=1e-6)
    np.testing.assert_allclose(table.inversion.estimate, [[0.1, 0.2], [0.3, 0.4]], atol=1e-12)
    np.testing.assert_allclose(table.conditional.estimate, [[1 / 3, 2 / 3], [3 / 7, 4 / 7]], atol=1e-5)


def test_inversion_of_counted_answers_has_the_variance_of_a_share() -> None:
    _, covariance = table_of([[10, 20], [30, 40]]).distribution.inversion()
    share = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(covariance, (np.diag(share) - np.outer(share, share)) / 100, atol=1e-12)


def test_intervals_of_counted_answers_are_the_binomial_profile_likelihood_ones() -> None:
    """For 20 of 100, the values p at which 2·(20·ln(.2/p) + 80·ln(.8/(1 − p))) is the χ² quantile."""
    table = table_of([[10, 20], [30, 40]])
    for bound in (table.cells.low[0, 1], table.cells.high[0, 1]):
        ratio = 2 * (20 * np.log(0.2 / bound) + 80 * np.log(0.8 / (1 - bound)))
        assert ratio == pytest.approx(QUANTILE**2, abs=0.02)


def test_the_difference_of_two_groups_is_that_of_their_conditional_shares() -> None:
    table = table_of([[30, 70], [120, 80]])
    difference = table.difference("no", "yes")
    np.testing.assert_allclose(difference.estimate, [0.3 - 0.6, 0.7 - 0.4], atol=1e-5)
    # A Wald interval of the same difference: -.3 ± 1.96 · √(.3 · .7 / 100 + .6 · .4 / 200) = -.412, -.188.
    assert difference.low[0] == pytest.approx(-0.412, abs=0.01)
    assert difference.high[0] == pytest.approx(-0.188, abs=0.01)
    with pytest.raises(InputError, match="no option"):
        table.difference("no", "maybe")
    with pytest.raises(InputError, match="twice"):
        table.difference("no", "no")


def test_a_group_that_nobody_is_in_has_no_conditional_share() -> None:
    table = table_of([[10, 10], [0, 0]])
    assert (table.conditional.low[1] == 0).all()
    assert (table.conditional.high[1] == 1).all()
    assert table.sparse.tolist() == [[False, False], [True, True]]
    assert any("nobody answered 'yes'" in warning for warning in table.warnings)


@pytest.mark.parametrize("protect", [False, True])
def test_large_crowds_show_their_joint_distribution_through_any_channels(protect: bool) -> None:
    rng = np.random.default_rng(5)
    joint = np.array([[0.35, 0.05], [0.2, 0.4]])
    cell = rng.choice(4, 40_000, p=joint.ravel())
    pairs: list[tuple[str | None, str | None]] = [
        (YES_NO.options[code // 2], YES_NO.options[code % 2]) for code in cell
    ]
    if protect:
        # Who skips one question must not change the shares among those who answered both.
        skipped = rng.random(len(pairs)) < 0.2
        pairs = [(first, None if skip else second) for (first, second), skip in zip(pairs, skipped, strict=True)]
    chosen = mechanism("randomized-response", epsilon=2, protect_participation=protect)
    table = crosstab(chosen.randomize(paired(pairs), entropy_from(7)), "a", "b")
    np.testing.assert_allclose(table.cells.estimate, joint, atol=0.03)
    np.testing.assert_allclose(table.inversion.estimate, joint, atol=0.03)
    assert ((table.cells.low <= joint) & (joint <= table.cells.high)).all()


def test_protecting_and_open_channels_mix_in_one_table() -> None:
    """Half of the workers hide also whether they answered, and a third of those skipped; the others are public."""
    rng = np.random.default_rng(8)
    joint = np.array([[0.35, 0.05], [0.2, 0.4]])
    cell = rng.choice(4, 20_000, p=joint.ravel())
    codes = np.stack([cell // 2, cell % 2], axis=1)
    channels = (identity(YES_NO), RandomizedResponse(epsilon=2, protect_participation=True).channel(YES_NO))
    used = np.arange(len(cell)) % 2
    hidden = codes.copy()
    hidden[rng.random(hidden.shape) < 1 / 3] = 2
    law = np.cumsum(channels[1].table, axis=1)[hidden]
    drawn = (rng.random((*hidden.shape, 1)) > law[:, :, :-1]).sum(axis=2)
    report = np.where(used[:, None] == 1, drawn, codes)
    rows = [
        (int(n), name, int(report[n, side]), int(used[n])) for n in range(len(cell)) for side, name in enumerate("ab")
    ]
    table = crosstab(Reports.from_rows(rows, channels, YES_NO), "a", "b")
    assert len(table.distribution.groups) == 2
    assert table.n_workers == 20_000
    np.testing.assert_allclose(table.cells.estimate, joint, atol=0.015)
    np.testing.assert_allclose(table.inversion.estimate, joint, atol=0.03)
    assert ((table.cells.low <= joint) & (joint <= table.cells.high)).all()
    # The public half alone would have an interval √2 wider than all workers together without privacy.
    width = (table.cells.high - table.cells.low)[1, 1]
    assert 2 * QUANTILE * np.sqrt(0.24 / 20_000) < width < 2 * QUANTILE * np.sqrt(0.24 / 10_000) * 1.02


def test_questions_with_other_options_stand_in_a_second_table() -> None:
    groups = Choices(("sales", "research", "support"))
    first = Answers.from_rows([(f"w{i}", "group", groups.options[i % 3]) for i in range(60)], groups)
    # Every worker but those of sales says yes; w0 and w1 have no second report.
    second = Answers.from_rows([(f"w{i}", "happy", YES_NO.options[i % 3 > 0]) for i in range(2, 60)], YES_NO)
    table = crosstab(Reports.unprotected(first), "group", "happy", column_reports=Reports.unprotected(second))
    assert table.n_workers == 58
    np.testing.assert_allclose(table.conditional.estimate, [[1, 0], [0, 1], [0, 1]], atol=1e-4)


def test_the_product_of_two_channels_is_the_likelihood_of_a_pair() -> None:
    chosen = mechanism("randomized-response", epsilon=1)
    reports = chosen.randomize(paired([("no", "yes")] * 50), entropy_from(3))
    (patterns,) = joint_distribution(reports, "a", reports, "b").groups
    channel = reports.channels[0]
    assert isinstance(channel, Channel)
    kronecker = np.kron(channel.table, channel.table).T
    for row in patterns.cells:
        assert any(np.allclose(row, line) for line in kronecker)
    np.testing.assert_allclose(patterns.votes.sum(axis=1), 1.0)


def test_refusals_name_what_is_wrong() -> None:
    reports = Reports.unprotected(paired([("no", "yes")]))
    with pytest.raises(InputError, match="two questions"):
        crosstab(reports, "a", "a")
    with pytest.raises(InputError, match="no report about the question 'c'"):
        crosstab(reports, "a", "c")
    apart = Answers.from_rows([("ada", "a", "no"), ("bob", "b", "no")], YES_NO)
    with pytest.raises(InputError, match="no worker has a report about both"):
        crosstab(Reports.unprotected(apart), "a", "b")
    twice = Answers.from_rows([("ada", "a", "no"), ("ada", "a", "yes"), ("ada", "b", "no")], YES_NO)
    with pytest.raises(InputError, match="'ada' has several"):
        crosstab(Reports.unprotected(twice), "a", "b")
    shared = mechanism("two-layer", low=0.1, high=0.3).randomize(paired([("no", "yes")] * 5), entropy_from(1))
    with pytest.raises(ChannelError, match="share a secret"):
        crosstab(shared, "a", "b")


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from(YES_NO.options), st.sampled_from(YES_NO.options)), min_size=1, max_size=60),
    st.sampled_from([None, 1.0, 3.0]),
)
def test_laws_of_every_table(pairs: list[tuple[str, str]], epsilon: float | None) -> None:
    answers = paired([*pairs])
    reports = (
        Reports.unprotected(answers)
        if epsilon is None
        else mechanism("randomized-response", epsilon=epsilon).randomize(answers, entropy_from(11))
    )
    table = crosstab(reports, "a", "b")
    assert table.cells.estimate.sum() == pytest.approx(1)
    assert table.inversion.estimate.sum() == pytest.approx(1)
    assert (table.cells.low >= 0).all()
    assert (table.cells.high <= 1).all()
    assert (table.cells.low <= table.cells.estimate + 1e-4).all()
    assert (table.cells.estimate <= table.cells.high + 1e-4).all()
    turned = crosstab(reports, "b", "a")
    np.testing.assert_allclose(turned.cells.estimate.T, table.cells.estimate, atol=5e-3)
    # The order of rows never matters.
    shuffled = reports.rows(np.random.default_rng(1).permutation(len(reports)))
    np.testing.assert_allclose(crosstab(shuffled, "a", "b").cells.low, table.cells.low, atol=1e-6)


def test_fixing_a_share_at_its_estimate_loses_nothing() -> None:
    chosen = mechanism("randomized-response", epsilon=2)
    rng = np.random.default_rng(2)
    pairs = [(YES_NO.options[rng.random() < 0.6], YES_NO.options[rng.random() < 0.3]) for _ in range(500)]
    reports = chosen.randomize(paired([*pairs]), entropy_from(2))
    joint = joint_distribution(reports, "a", reports, "b")
    best = joint.maximum_likelihood()
    difference = Difference(conditional_shares((2, 2), 0), conditional_shares((2, 2), 1))
    for quantity in (cell_shares((2, 2)), conditional_shares((2, 2)), difference):
        ratio = joint.likelihood_ratio(quantity, quantity.estimate(best.cells), best)
        assert (ratio < 0.01).all()


def test_an_interval_holds_a_value_exactly_where_its_likelihood_ratio_is_small() -> None:
    """What the measurement of coverage relies on, for cells, conditional shares and differences."""
    for seed in range(3):
        joint, rows, columns = draw(KINDS[5], seed)
        table, held = crosstab(rows, "q", "q", column_reports=columns), covered(KINDS[5], seed)
        within = joint / joint.sum(axis=1, keepdims=True)
        difference = table.difference(*table.row_options[:2])
        for name, interval, truth in (
            ("cells", table.cells, joint),
            ("conditional", table.conditional, within),
            ("difference", difference, within[0] - within[1]),
        ):
            inside = (interval.low <= truth) & (truth <= interval.high)
            assert inside.ravel().tolist() == held[name].tolist()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_intervals_cover_as_often_as_they_say(kind: object) -> None:
    """A small version of tools/joint_coverage.py: 30 crowds of each kind, bounds at about four standard errors."""
    held = [covered(kind, seed) for seed in range(30)]  # type: ignore[arg-type]
    for name in ("cells", "conditional", "inversion"):
        assert 0.88 <= np.mean(np.concatenate([each[name] for each in held])) <= 0.995, name
