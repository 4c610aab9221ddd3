"""The figures that a reader of the papers would check first, at the papers' own sizes (CROWDVEIL_DATA)."""

from __future__ import annotations

import secrets

import numpy as np
import pytest

from crowdveil.entropy import Keystream
from crowdveil.inference import Majority, PrivateDawidSkene, method
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.papers import Settings
from crowdveil.papers.li_trial import as_answers, duchenne, error_rate, mechanism_of
from crowdveil.papers.loki_selection import SPEND, STOP, Figure2a, Figure2b, rmse
from crowdveil.papers.real import numeric
from crowdveil.papers.reproduction import select
from crowdveil.papers.run import read_rows, write_rows
from crowdveil.papers.sun import Figure2
from crowdveil.papers.sun_trial import algorithm_1, error, mae, within_scale
from crowdveil.reports import Reports
from crowdveil.simulate import preset


@pytest.fixture(scope="module")
def settings() -> Settings:
    drawn = Settings(secrets.randbits(32), trials=3, quick=True)
    print(f"seed {drawn.seed}")
    return drawn


def test_duchenne_has_the_published_counts_and_one_layer_loses_as_published(settings: Settings) -> None:
    data = duchenne(settings)
    counts = (
        len(data.answers.questions),
        len(data.answers.workers),
        len(data.answers),
        int((~np.isnan(data.truth)).sum()),
    )
    assert counts == (2134, 64, 17729, 159)
    before = error_rate(Majority().fit(Reports.unprotected(data.answers)), data.truth)
    for epsilon, published in ((1.0, 0.12), (0.5, 0.17)):
        mechanism = mechanism_of("one", epsilon)
        after = [
            error_rate(Majority().fit(as_answers(mechanism.randomize(data.answers, Keystream(seed)))), data.truth)
            for seed in settings.seeds(100)
        ]
        change = float(np.mean(after)) - before
        print(f"one layer, majority, ε {epsilon:g}: change {change:.3f}")
        assert change == pytest.approx(published, abs=0.02)


def test_adult_without_privacy(settings: Settings) -> None:
    data = numeric("adult", settings)
    ours = mae(algorithm_1(Reports.unprotected(data.answers)), data.truth)
    print(f"adult, no privacy: MAE {ours:.3f}")
    assert ours == pytest.approx(0.323, abs=0.01)


def test_wsd_read_as_answers_and_through_the_channel(settings: Settings) -> None:
    data = numeric("wsd", settings, highest=4)
    before = mae(algorithm_1(Reports.unprotected(data.answers)), data.truth)
    mechanism = RandomizedResponse(epsilon=3, protect_participation=True)
    read, known = [], []
    for seed in settings.seeds(5):
        reports = mechanism.randomize(data.answers, Keystream(seed))
        read.append(mae(algorithm_1(reports), data.truth) - before)
        value = np.asarray(method("channel-em").fit(reports).value, dtype=np.float64)
        known.append(mae(within_scale(data.answers, value), data.truth) - before)
    print(f"wsd, ε 3: RR change {np.mean(read):.3f}, channel-em {np.mean(known):.3f}")
    assert np.mean(read) == pytest.approx(0.68, abs=0.12)
    assert np.mean(known) <= 0.04


def test_suns_synthetic_crowd_and_the_note_says_what_mf_answers(settings: Settings, tmp_path) -> None:
    figure = Figure2(n_workers=2000, epsilons=(0.1, 1.0))
    write_rows(tmp_path / "rows.csv", figure.rows(Settings(settings.seed, trials=1, quick=True)))
    rows = read_rows(tmp_path / "rows.csv")
    lp, rr, mf = (error(rows, name, sparsity=0.9, epsilon=1.0) for name in ("LP", "RR", "MF"))
    zero = error(rows, "always 0", sparsity=0.9)
    print(f"synthetic, ε 1: LP {lp:.2f}, RR {rr:.2f}, MF {mf:.3f}, always 0 {zero:.3f}")
    assert lp == pytest.approx(4.19, abs=0.22)
    assert rr == pytest.approx(4.47, abs=0.24)
    assert mf == pytest.approx(zero, abs=0.05)
    said = [claim for claim in figure.claims(rows) if "always answering 0" in claim.ours]
    assert said[0].verdict == "fails"
    assert f"{mf:.3f}" in said[0].ours


def test_private_dawid_skene_finds_the_experts(settings: Settings) -> None:
    errors = []
    for seed in settings.seeds(5):
        crowd = preset("wang-spammers").draw(seed)
        reports = RandomizedResponse(epsilon=2).randomize(crowd.answers, Keystream(seed))
        fits = (PrivateDawidSkene().fit(reports), Majority().fit(reports))
        errors.append([float(np.mean(fit.value != crowd.truth)) for fit in fits])
    ours, majority = np.mean(errors, axis=0)
    print(f"experts among spammers, ε 2: private Dawid–Skene {ours:.4f}, majority {majority:.3f}")
    assert ours <= 0.003
    assert majority == pytest.approx(0.28, abs=0.03)


def test_stopping_at_no_gain_is_never_clearly_worse_than_spending_everything(settings: Settings) -> None:
    figure = Figure2a(budgets=(5.0, 20.0, 40.0))
    rows = figure.rows(Settings(settings.seed, trials=8, quick=True))
    print(f"Loki, C = 40: stopping {rmse(rows, STOP, 40.0):.3f}, spending all {rmse(rows, SPEND, 40.0):.3f}")
    stop, spend = (
        np.array([row["squared"] for row in select(rows, policy=policy, budget=40.0)], dtype=np.float64)
        for policy in (STOP, SPEND)
    )
    # The same surveys under both rules: a rule that lost would show in the mean of the differences.
    difference = stop - spend
    assert difference.mean() < 3 * difference.std() / np.sqrt(len(difference))


def test_fairness_slows_depletion(settings: Settings) -> None:
    figure = Figure2b(alphas=(0.0, 0.9))
    rows = figure.rows(settings)
    used = {alpha: float(select(rows, alpha=alpha, none_is_free="True")[-1]["exhausted"]) for alpha in figure.alphas}
    print(f"Loki, share exhausted at the end by α: {used}")
    assert used[0.9] < used[0.0]
