"""κ and α: the classical values without privacy, unbiased values and honest intervals with it."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil import Answers, Choices, Reports, Scale
from crowdveil.channel import Channel, identity
from crowdveil.entropy import entropy_from
from crowdveil.errors import ChannelError, InputError
from crowdveil.inference.agreement import Metric, _units, cohen_kappa, fleiss_kappa, krippendorff_alpha
from crowdveil.mechanisms import RandomizedResponse, mechanism

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from agreement_coverage import KINDS, covered, draw, true_coefficients

# Fleiss (1971) as worked out in textbooks: 10 questions, 14 raters, 5 options; κ = .210.
FLEISS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip


def reports_of(rows: list[tuple[str, int, str]], domain: Choices | Scale) -> Reports:
    return Reports.unprotected(Answers.from_rows(rows, domain))


def test_cohen_kappa_of_a_table_worked_by_hand() -> None:
    """[[20, 5], [10, 15]]: observed agreement .7, by chance .5, κ = .4."""
    pairs = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15
    rows = [(name, n, answer) for n, pair in enumerate(pairs) for name, answer in zip("ab", pair, strict=True)]
    kappa = cohen_kappa(reports_of(rows, Choices(("no", "yes"))), "a", "b")
    assert kappa.estimate == pytest.approx(0.4, abs=1e-12)
    # Fleiss, Cohen & Everitt's (1969) standard error of κ in this table is .1275.
    assert (kappa.high - kappa.low) / 2 == pytest.approx(2.01 * 0.1275, abs=0.02)
    assert kappa.n_questions == 50


def test_fleiss_kappa_of_the_textbook() -> None:
    options = tuple("abcde")
    rows = []
    for question, counts in enumerate(FLEISS):
        answers = [option for option, count in zip(options, counts, strict=True) for _ in range(count)]
        rows += [(f"r{n}", question, answer) for n, answer in enumerate(answers)]
    assert fleiss_kappa(reports_of(rows, Choices(options))).estimate == pytest.approx(0.20993, abs=1e-5)


@pytest.mark.parametrize(("metric", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorff_alpha_of_his_own_example(metric: Metric, alpha: float) -> None:
    """Krippendorff (2011), example C: four observers, twelve units, missing data."""
    lines = [
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    ]
    rows = [
        (f"r{row}", unit, value)
        for row, line in enumerate(lines)
        for unit, value in enumerate(line.split())
        if value != "."
    ]
    found = krippendorff_alpha(reports_of(rows, Scale(1, 5)), metric=metric)
    assert found.estimate == pytest.approx(alpha, abs=5e-4)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=3, max_size=30))
def test_coefficients_without_privacy_equal_the_classical_formulas(table: list[list[int]]) -> None:
    domain = Choices(("a", "b", "c"))
    rows = [(f"r{n}", q, domain.options[code]) for q, line in enumerate(table) for n, code in enumerate(line)]
    reports = reports_of(rows, domain)
    counts = np.array([np.bincount(line, minlength=3) for line in table], dtype=float)
    share, n = counts.sum(axis=0) / counts.sum(), counts.sum()
    observed = ((counts**2).sum(axis=1) - 3).mean() / 6
    by_chance = (share**2).sum()
    kappa, alpha = fleiss_kappa(reports), krippendorff_alpha(reports)
    if by_chance > 1 - 1e-9:
        assert math.isnan(kappa.estimate)
        assert (alpha.low, alpha.high) == (-1, 1)
        return
    if not math.isnan(kappa.estimate):
        assert kappa.estimate == pytest.approx((observed - by_chance) / (1 - by_chance), abs=1e-9)
    if not math.isnan(alpha.estimate):
        expected = (n**2 - (counts.sum(axis=0) ** 2).sum()) / (n * (n - 1))
        assert alpha.estimate == pytest.approx(1 - (1 - observed) / expected, abs=1e-9)
    for each in (kappa, alpha):
        assert -1 <= each.low <= each.high <= 1
        assert math.isnan(each.estimate) or each.low <= each.estimate <= each.high


def test_raw_reports_understate_agreement_and_debiased_ones_do_not() -> None:
    """300 questions at ε 2: counting the reports as answers gives about (tanh 1)² of κ."""
    kind = KINDS[3]
    reports = draw(kind, 1)
    raw = Reports(
        reports.worker, reports.question, reports.report, reports.channel, reports.workers, reports.questions,
        (Reports.unprotected(Answers.from_rows([("a", 1, "0")], Choices(("0", "1")))).channels[0],), reports.domain,
    )  # fmt: skip
    truth = true_coefficients(kind)["fleiss"]
    counted, debiased = fleiss_kappa(raw), fleiss_kappa(reports)
    assert counted.high < truth
    assert debiased.low < truth < debiased.high
    assert counted.estimate == pytest.approx(debiased.estimate * np.tanh(1) ** 2, abs=0.03)


def test_both_disagreements_are_exactly_unbiased() -> None:
    """All 64 outcomes of three questions, two workers and binary randomised response, weighed by their probability."""
    domain = Choices(("no", "yes"))
    channel = RandomizedResponse(epsilon=1).channel(domain)
    answers = (0, 0, 0, 1, 1, 1)
    distances = 1.0 - np.eye(2)

    def disagreement(codes: tuple[int, ...], through: Channel) -> np.ndarray:
        rows = [(f"w{n % 2}", n // 2, code, 0) for n, code in enumerate(codes)]
        units = _units(Reports.from_rows(rows, [through], domain), distances)
        total = units.columns(1 / (units.size - 1)).sum(axis=0)
        return np.concatenate(units.disagreement(self_pairs=False)(total[None]))

    expected = np.zeros(2)
    for codes in itertools.product((0, 1), repeat=6):
        probability = np.prod([channel.table[answer, code] for answer, code in zip(answers, codes, strict=True)])
        expected += probability * disagreement(codes, channel)
    np.testing.assert_allclose(expected, disagreement(answers, identity(domain)), atol=1e-12)


def test_debiased_coefficients_are_right_on_average() -> None:
    kind = KINDS[9]
    truth = true_coefficients(kind)
    estimates = [krippendorff_alpha(draw(kind, seed)).estimate for seed in range(60)]
    assert np.mean(estimates) == pytest.approx(truth["nominal"], abs=5 * np.std(estimates) / np.sqrt(60))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_intervals_cover_as_often_as_they_say(kind: object) -> None:
    """A small version of tools/agreement_coverage.py: 60 crowds of each kind."""
    held = [covered(kind, seed) for seed in range(60)]  # type: ignore[arg-type]
    for name in held[0]:
        assert np.mean([each[name] for each in held]) >= 0.86, name


def test_refusals_name_what_is_wrong() -> None:
    domain = Choices(("no", "yes"))
    reports = reports_of([("a", 1, "no"), ("b", 1, "yes"), ("a", 2, "no"), ("b", 2, "no")], domain)
    with pytest.raises(InputError, match="two workers"):
        cohen_kappa(reports, "a", "c")
    with pytest.raises(InputError, match="two workers"):
        cohen_kappa(reports, "a", "a")
    with pytest.raises(InputError, match="nominal, ordinal or interval"):
        krippendorff_alpha(reports, metric="ratio")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="two questions with two or more"):
        fleiss_kappa(reports_of([("a", 1, "no"), ("b", 2, "yes")], domain))
    with pytest.raises(InputError, match="some have several"):
        fleiss_kappa(reports_of([("a", 1, "no"), ("a", 1, "yes")], domain))
    answers = Answers.from_rows([(name, q, "no") for name in "ab" for q in range(4)], domain)
    with pytest.raises(ChannelError, match="share a secret"):
        fleiss_kappa(mechanism("two-layer", low=0.1, high=0.3).randomize(answers, entropy_from(1)))
