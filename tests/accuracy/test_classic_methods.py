"""Accuracy on real crowds (CROWDVEIL_DATA): without privacy the published level, with it no collapse."""

from __future__ import annotations

import secrets

import numpy as np
import pytest

from crowdveil import Estimate, Reports
from crowdveil.entropy import entropy_from
from crowdveil.files import load_dataset
from crowdveil.inference import method
from crowdveil.inference.metrics import score
from crowdveil.mechanisms import mechanism


def fitted(name: str, dataset: str, **parameters: object) -> tuple[Estimate, dict[str, str]]:
    answers, truth = load_dataset(dataset)
    return method(name, **parameters).fit(Reports.unprotected(answers)), truth


@pytest.mark.parametrize(("dataset", "least"), [("rte", 0.925), ("dog", 0.84), ("web", 0.825), ("bluebird", 0.895)])
def test_dawid_skene_reaches_the_published_accuracy(dataset: str, least: float) -> None:
    estimate, truth = fitted("dawid-skene", dataset)
    found = score(estimate, truth)["accuracy"]
    print(f"dawid-skene on {dataset}: {found:.4f} (at least {least})")
    assert found >= least
    assert estimate.converged


def test_numbers_on_the_emotion_data() -> None:
    found = {}
    for name in ("mean", "median", "weighted-mean"):
        estimate, truth = fitted(name, "emotion")
        found[name] = score(estimate, truth)["mae"]
    print(f"emotion: {found}")
    assert found["mean"] == pytest.approx(12.02, abs=0.005)
    assert found["median"] == pytest.approx(13.53, abs=0.005)
    assert found["weighted-mean"] <= 11.9


@pytest.mark.parametrize("dataset", ["rte", "bluebird", "dog", "web"])
def test_single_precision_gives_the_labels_of_double(dataset: str) -> None:
    single, double = (fitted("dawid-skene", dataset, precision=precision)[0] for precision in ("float32", "float64"))
    assert (single.value == double.value).mean() > 0.999


@pytest.mark.parametrize("name", ["majority", "weighted-vote", "dawid-skene", "one-coin"])
@pytest.mark.parametrize("dataset", ["rte", "dog"])
def test_no_method_collapses_to_one_class_under_strong_privacy(name: str, dataset: str) -> None:
    answers, _ = load_dataset(dataset)
    for _ in range(3):
        seed = secrets.randbelow(2**32)
        reports = mechanism("randomized-response", epsilon=0.5).randomize(answers, entropy_from(seed))
        estimate = method(name).fit(reports)
        largest = np.bincount(estimate.value, minlength=answers.domain.size).max() / len(estimate)
        print(f"{name} on {dataset} at ε = 0.5, seed {seed}: the largest class has {largest:.2f}")
        assert largest < 0.85
