"""The figures that a reader of the papers would check first, at the papers' own sizes (CROWDVEIL_DATA)."""

from __future__ import annotations

import secrets
from pathlib import Path

import numpy as np
import pytest

from crowdveil.entropy import Keystream
from crowdveil.inference import ChannelEM, Majority, PrivateDawidSkene
from crowdveil.inference.methods.channel_em import Truths
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.papers import Settings
from crowdveil.papers.core.datasets import numeric
from crowdveil.papers.core.reproduction import select
from crowdveil.papers.core.run import read_rows, write_rows
from crowdveil.papers.li.trial import as_answers, build_mechanism, duchenne, error_rate
from crowdveil.papers.loki.errors import rmse
from crowdveil.papers.loki.films import Films
from crowdveil.papers.loki.selection import SPEND, STOP, Figure2a, stopping_gap
from crowdveil.papers.loki.surveys import Figure2b
from crowdveil.papers.sun.synthetic import Figure2, crowd_rows
from crowdveil.papers.sun.trial import algorithm_1, error, mae
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
        mechanism = build_mechanism("one", epsilon)
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
    truths: tuple[Truths, ...] = ("on-scale", "anywhere")
    changes = []
    for seed in settings.seeds(8):
        reports = mechanism.randomize(data.answers, Keystream(seed))
        values = [algorithm_1(reports), *(ChannelEM(truths=each).fit(reports).value for each in truths)]
        changes.append([mae(np.asarray(value, dtype=np.float64), data.truth) - before for value in values])
    read, on_scale, anywhere = np.mean(changes, axis=0)
    print(f"wsd, ε 3: RR change {read:.3f}, channel-em {on_scale:.3f} (truths anywhere: {anywhere:.3f})")
    assert read == pytest.approx(0.68, abs=0.12)
    assert on_scale <= 0.04


def test_suns_synthetic_crowd_and_the_note_says_what_mf_answers(settings: Settings, tmp_path: Path) -> None:
    figure = Figure2()
    drawn = [crowd_rows(2000, 200, 0.9, (1.0,), seed, figure.reading) for seed in settings.seeds(4)]
    write_rows(tmp_path / "rows.csv", [row for rows in drawn for row in rows])
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


def test_stopping_at_no_gain_beats_spending_everything_at_the_largest_budget(settings: Settings) -> None:
    figure = Figure2a()
    top = figure.budgets[-1]
    drawn = Settings(settings.seed, trials=20, quick=True)
    rows = figure.measure(Films.load(settings), drawn, figure.reading, [top], [STOP, SPEND])
    mean, error = stopping_gap(rows, top)
    print(f"Loki, C = {top:g}: stopping {rmse(rows, STOP, top):.3f}, spending all {rmse(rows, SPEND, top):.3f}")
    print(f"squared error, stopping − spending: {mean:+.3f} ± {error:.3f}")
    assert mean < -2 * error


def test_fairness_slows_depletion(settings: Settings) -> None:
    figure, films = Figure2b(), Films.load(settings)
    for reading in (figure.reading, figure.other):
        rows = figure.trial(films, reading, settings.seed, [(0.0, True), (0.9, True)])
        ends = {alpha: select(rows, alpha=alpha)[-1] for alpha in (0.0, 0.9)}
        used = {alpha: float(row["exhausted"]) for alpha, row in ends.items()}
        print(f"Loki, {reading.name}: share exhausted at the end by α: {used}")
        assert used[0.9] < used[0.0]
